"""The filters decide each call as their rules say, on both processors."""

from __future__ import annotations

import errno

import pytest
from sandboxd.seccomp import bpf
from sandboxd.seccomp.rules import CLONE_NEWUSER, Rule, build, command_rules, sandbox_rules
from sandboxd.seccomp.syscalls import AARCH64, NEWEST_CALL, X86_64, Processor

pytestmark = pytest.mark.req("NOD-042")

I386 = 0x40000003
ARM = 0x40000028
PROCESSORS = pytest.mark.parametrize("processor", [X86_64, AARCH64], ids=lambda p: p.name)
BOTH = pytest.mark.parametrize(
    "rules",
    [sandbox_rules(joins_user_namespace=False), command_rules(streams=False), command_rules()],
    ids=["sandbox", "command-without-streams", "command"],
)


def refused(number: int) -> int:
    return bpf.ERRNO | number


def sandbox(*, joins: bool = False) -> list[Rule]:
    return sandbox_rules(joins_user_namespace=joins)


def decide(processor: Processor, call: str, *arguments: int, joins: bool = False) -> int:
    program = build(processor, sandbox(joins=joins))
    return bpf.evaluate(program, processor.numbers[call], processor.audit_arch, arguments)


def decide_for_command(processor: Processor, call: str, *arguments: int, streams: bool = False) -> int:
    program = build(processor, command_rules(streams=streams))
    return bpf.evaluate(program, processor.numbers[call], processor.audit_arch, arguments)


@PROCESSORS
@pytest.mark.parametrize("family", [1, 2, 10])
def test_ordinary_sockets_are_allowed(processor: Processor, family: int) -> None:
    assert decide(processor, "socket", family, 1, 0) == bpf.ALLOW


@PROCESSORS
@pytest.mark.parametrize(
    ("family", "protocol"), [(40, 0), (17, 0), (38, 0), (16, 2), (16, 9), (29, 1), (44, 0)]
)
def test_sockets_that_leave_the_namespace_are_refused(
    processor: Processor, family: int, protocol: int
) -> None:
    for call in ("socket", "socketpair"):
        assert decide(processor, call, family, 1, protocol) == refused(errno.EAFNOSUPPORT)


@PROCESSORS
def test_netlink_route_is_allowed_since_getaddrinfo_uses_it(processor: Processor) -> None:
    assert decide(processor, "socket", 16, 3, 0) == bpf.ALLOW


@PROCESSORS
def test_high_halves_of_int_arguments_do_not_hide_a_family(processor: Processor) -> None:
    # The kernel takes the low 32 bits as the family: so does the filter.
    assert decide(processor, "socket", (1 << 32) | 40, 1, 0) == refused(errno.EAFNOSUPPORT)


@PROCESSORS
def test_user_namespaces_cannot_be_made_again(processor: Processor) -> None:
    assert decide(processor, "unshare", CLONE_NEWUSER) == refused(errno.EPERM)
    assert decide(processor, "clone", CLONE_NEWUSER | 17) == refused(errno.EPERM)
    assert decide(processor, "clone3", 0) == refused(errno.ENOSYS)


@PROCESSORS
def test_threads_and_forks_stay_possible(processor: Processor) -> None:
    assert decide(processor, "clone", 17) == bpf.ALLOW
    assert decide(processor, "clone", 0x3D0F00) == bpf.ALLOW
    assert decide(processor, "unshare", 0x400) == bpf.ALLOW


@PROCESSORS
def test_setns_is_left_only_for_the_one_user_namespace(processor: Processor) -> None:
    assert decide(processor, "setns", 3, CLONE_NEWUSER) == refused(errno.EPERM)
    assert decide(processor, "setns", 3, CLONE_NEWUSER, joins=True) == bpf.ALLOW
    for flags in (0, 0x40000000, CLONE_NEWUSER | 0x20000):
        assert decide(processor, "setns", 3, flags, joins=True) == refused(errno.EPERM)


@PROCESSORS
def test_a_debugger_may_start_a_program_but_not_attach(processor: Processor) -> None:
    assert decide(processor, "ptrace", 0) == bpf.ALLOW
    assert decide(processor, "ptrace", 16, 1) == refused(errno.EPERM)
    assert decide(processor, "ptrace", 0x4206, 1) == refused(errno.EPERM)


@PROCESSORS
def test_terminals_cannot_be_typed_into(processor: Processor) -> None:
    assert decide(processor, "ioctl", 0, 0x5412) == refused(errno.EPERM)
    assert decide(processor, "ioctl", 0, 0x541C) == refused(errno.EPERM)
    assert decide(processor, "ioctl", 0, 0x5413) == bpf.ALLOW


@PROCESSORS
@pytest.mark.parametrize(
    "call",
    [
        "mount",
        "bpf",
        "keyctl",
        "kexec_load",
        "perf_event_open",
        "move_mount",
        "process_vm_readv",
        "userfaultfd",
    ],
)
def test_kernel_interfaces_are_refused(processor: Processor, call: str) -> None:
    assert decide(processor, call) == refused(errno.EPERM)


@PROCESSORS
def test_io_uring_looks_as_if_the_kernel_had_none(processor: Processor) -> None:
    assert decide(processor, "io_uring_setup") == refused(errno.ENOSYS)


@PROCESSORS
@pytest.mark.req("NOD-457")
@pytest.mark.parametrize("call", ["socket", "socketpair"])
def test_a_command_makes_unix_sockets_and_no_other(processor: Processor, call: str) -> None:
    assert decide_for_command(processor, call, 1, 1, 0) == bpf.ALLOW
    for family in {*range(64), (1 << 32) | 2, 0xFFFFFFFF} - {1}:
        assert decide_for_command(processor, call, family, 1, 0) == refused(errno.EAFNOSUPPORT)


@PROCESSORS
@pytest.mark.req("NOD-457")
def test_all_else_that_a_sandbox_may_not_a_command_may_not(processor: Processor) -> None:
    others = [rule for rule in sandbox() if rule.call not in ("socket", "socketpair")]
    assert set(others) <= set(command_rules())


@PROCESSORS
@BOTH
def test_other_calls_are_allowed(processor: Processor, rules: list[Rule]) -> None:
    program = build(processor, rules)
    named = set(processor.numbers.values())
    for number in set(range(NEWEST_CALL + 1)) - named:
        assert bpf.evaluate(program, number, processor.audit_arch) == bpf.ALLOW


@PROCESSORS
@BOTH
def test_calls_that_nobody_has_judged_look_as_if_the_kernel_had_none(
    processor: Processor, rules: list[Rule]
) -> None:
    program = build(processor, rules)
    x32 = 0x40000000
    for number in (NEWEST_CALL + 1, 547, x32 | 0, x32 | 41, 0x7FFFFFFF, -1):
        assert bpf.evaluate(program, number, processor.audit_arch, (2,)) == refused(errno.ENOSYS)


@PROCESSORS
@BOTH
def test_calls_of_another_arch_end_the_process(processor: Processor, rules: list[Rule]) -> None:
    program = build(processor, rules)
    for arch in {I386, ARM, X86_64.audit_arch, AARCH64.audit_arch} - {processor.audit_arch}:
        assert bpf.evaluate(program, 0, arch) == bpf.KILL_PROCESS


@PROCESSORS
@pytest.mark.parametrize("flags", [0, 0o4000, 0o2000000, 0o2004000])
def test_streams_are_asked_for_and_nothing_else(processor: Processor, flags: int) -> None:
    def socket(family: int, kind: int, protocol: int = 0) -> int:
        return decide_for_command(processor, "socket", family, kind | flags, protocol, streams=True)

    assert [socket(2, 1), socket(2, 1, 6)] == [bpf.ASK] * 2
    assert [socket(1, kind) for kind in (1, 2, 5)] == [bpf.ALLOW] * 3
    others = [(2, 1, 262), (2, 1, 132), (2, 2, 0), (2, 3, 6), (10, 1, 0), (16, 3, 0), (17, 3, 0), (40, 1, 0)]
    assert [socket(*each) for each in others] == [refused(errno.EAFNOSUPPORT)] * len(others)


@PROCESSORS
def test_nobody_chooses_a_route(processor: Processor) -> None:
    def option(level: int, name: int) -> int:
        return decide_for_command(processor, "setsockopt", 3, level, name, streams=True)

    assert [option(0, name) for name in (4, 15, 19, 21, 39, 50)] == [refused(errno.EPERM)] * 6
    assert [option(0, 1), option(0, 2), option(6, 4), option(1, 15), option(6, 1)] == [bpf.ALLOW] * 5


def test_every_rule_names_a_call_that_some_processor_has() -> None:
    known = set(X86_64.numbers) | set(AARCH64.numbers)
    assert {rule.call for rule in [*sandbox(joins=True), *command_rules()]} <= known


@PROCESSORS
def test_every_number_in_the_table_is_used(processor: Processor) -> None:
    laid_by = {"seccomp"}
    assert set(processor.numbers) <= {rule.call for rule in [*sandbox(), *command_rules()]} | laid_by


@PROCESSORS
def test_the_numbers_are_those_of_libseccomp(processor: Processor) -> None:
    library = pytest.importorskip("pyseccomp", reason="libseccomp is not installed", exc_type=Exception)
    arch = library.Arch.X86_64 if processor is X86_64 else library.Arch.AARCH64
    for call, number in processor.numbers.items():
        known = library.resolve_syscall(arch, call)
        assert known in (number, -1), call  # -1: this libseccomp is older than the call


@PROCESSORS
def test_the_program_is_small_enough_for_the_kernel(processor: Processor) -> None:
    assert len(bpf.decode(build(processor, sandbox(joins=True)))) < 4096
