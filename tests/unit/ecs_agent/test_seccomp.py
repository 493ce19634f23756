"""The filter decides each call as its rules say, on both processors."""

from __future__ import annotations

import errno

import pytest

from localstack.ecs_agent import bpf, seccomp
from localstack.ecs_agent.syscalls import AARCH64, X86_64, Processor

pytestmark = pytest.mark.req("NOD-042")

I386 = 0x40000003
PROCESSORS = pytest.mark.parametrize("processor", [X86_64, AARCH64], ids=lambda p: p.name)


def refused(number: int) -> int:
    return bpf.ERRNO | number


def decide(processor: Processor, call: str, *arguments: int, joins: bool = False) -> int:
    program = seccomp.build(processor, joins_user_namespace=joins)
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
    assert decide(processor, "unshare", seccomp.CLONE_NEWUSER) == refused(errno.EPERM)
    assert decide(processor, "clone", seccomp.CLONE_NEWUSER | 17) == refused(errno.EPERM)
    assert decide(processor, "clone3", 0) == refused(errno.ENOSYS)


@PROCESSORS
def test_threads_and_forks_stay_possible(processor: Processor) -> None:
    assert decide(processor, "clone", 17) == bpf.ALLOW
    assert decide(processor, "clone", 0x3D0F00) == bpf.ALLOW
    assert decide(processor, "unshare", 0x400) == bpf.ALLOW


@PROCESSORS
def test_setns_is_left_only_for_the_one_user_namespace(processor: Processor) -> None:
    assert decide(processor, "setns", 3, seccomp.CLONE_NEWUSER) == refused(errno.EPERM)
    assert decide(processor, "setns", 3, seccomp.CLONE_NEWUSER, joins=True) == bpf.ALLOW
    for flags in (0, 0x40000000, seccomp.CLONE_NEWUSER | 0x20000):
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
def test_other_calls_are_allowed(processor: Processor) -> None:
    program = seccomp.build(processor)
    named = set(processor.numbers.values())
    for number in set(range(500)) - named:
        assert bpf.evaluate(program, number, processor.audit_arch) == bpf.ALLOW


def test_calls_of_another_table_never_pass() -> None:
    program = seccomp.build(X86_64)
    assert bpf.evaluate(program, 0, I386) == bpf.KILL_PROCESS
    assert bpf.evaluate(program, 0x40000000 | 41, X86_64.audit_arch, (40,)) == refused(errno.ENOSYS)


def test_every_rule_names_a_call_that_some_processor_has() -> None:
    known = set(X86_64.numbers) | set(AARCH64.numbers)
    assert {rule.call for rule in seccomp.rules(joins_user_namespace=True)} <= known


@PROCESSORS
def test_every_number_in_the_table_is_used(processor: Processor) -> None:
    assert set(processor.numbers) <= {rule.call for rule in seccomp.rules(joins_user_namespace=False)}


@PROCESSORS
def test_the_numbers_are_those_of_libseccomp(processor: Processor) -> None:
    library = pytest.importorskip("pyseccomp", reason="libseccomp is not installed", exc_type=Exception)
    arch = library.Arch.X86_64 if processor is X86_64 else library.Arch.AARCH64
    for call, number in processor.numbers.items():
        known = library.resolve_syscall(arch, call)
        assert known in (number, -1), call  # -1: this libseccomp is older than the call


@PROCESSORS
def test_the_program_is_small_enough_for_the_kernel(processor: Processor) -> None:
    assert len(bpf.decode(seccomp.build(processor, joins_user_namespace=True))) < 4096
