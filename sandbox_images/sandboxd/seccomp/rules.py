"""Which system calls a sandbox and its commands may not make, and why.

Namespaces, where there are any, and missing capabilities already stop most of this; the filters close what they
do not cover (vsock, user namespaces made again, io_uring) and take whole subsystems, each with a history of
kernel escapes, out of reach. Where there is no network namespace, the commands' filter is the egress guard: a
command that can make no socket of a network reaches none (docs/decisions/0008).
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterable
from dataclasses import dataclass

from . import bpf
from .bpf import Instruction
from .syscalls import NEWEST_CALL, Processor

CLONE_NEWUSER = 0x10000000
# NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
_NEW_NAMESPACES = 0x7E020000
_CLONE_NEWTIME = 0x80  # only for unshare: in clone these bits are the exit signal

_AF_NETLINK = 16
_NETLINK_ROUTE = 0
# vsock reaches the hypervisor whatever the network namespace; packet, alg, can, tipc, … are not needed by commands.
_FAMILIES = (socket.AF_UNIX.value, socket.AF_INET.value, socket.AF_INET6.value)

_STREAM_KINDS = tuple(
    socket.SOCK_STREAM | flags
    for flags in (0, socket.SOCK_NONBLOCK, socket.SOCK_CLOEXEC, socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)
)
# IP_TOS, TTL, PKTINFO, MTU_DISCOVER, RECVERR, RECVTTL, RECVTOS, BIND_ADDRESS_NO_PORT, LOCAL_PORT_RANGE. Not a device or a
# route that the sender chooses (IP_UNICAST_IF, IP_OPTIONS), nor addresses that are not the machine's (IP_FREEBIND,
# IP_TRANSPARENT), nor groups (IP_ADD_SOURCE_MEMBERSHIP, MCAST_JOIN_GROUP, ...), which the kernel announces on a device at
# once, whatever the socket is tied to.
_HARMLESS_OF_IP = (1, 2, 8, 10, 11, 12, 13, 24, 51)

_PTRACE_ATTACH = 16
_PTRACE_SEIZE = 0x4206
_TIOCSTI = 0x5412
_TIOCLINUX = 0x541C


@dataclass(frozen=True)
class Refuse:
    """Refuse the call whatever its arguments."""

    call: str
    errno: int = errno.EPERM

    def block(self, number: int) -> list[Instruction]:
        return [Instruction(bpf.JUMP_EQUAL, 0, 1, number), bpf.fail(self.errno)]


@dataclass(frozen=True)
class RefuseBits:
    """Refuse the call when argument `argument` has one of the bits of `mask`."""

    call: str
    argument: int
    mask: int
    errno: int = errno.EPERM

    def block(self, number: int) -> list[Instruction]:
        return [
            Instruction(bpf.JUMP_EQUAL, 0, 4, number),
            bpf.load_argument(self.argument),
            Instruction(bpf.JUMP_ANY_BIT, 0, 1, self.mask),
            bpf.fail(self.errno),
            bpf.give(bpf.ALLOW),
        ]


@dataclass(frozen=True)
class RefuseValues:
    """Refuse the call when argument `argument` is one of `values`."""

    call: str
    argument: int
    values: tuple[int, ...]
    errno: int = errno.EPERM

    def block(self, number: int) -> list[Instruction]:
        return _by_value(self, number, listed=bpf.fail(self.errno), other=bpf.give(bpf.ALLOW))


@dataclass(frozen=True)
class OnlyValues:
    """Refuse the call unless argument `argument` is one of `values`."""

    call: str
    argument: int
    values: tuple[int, ...]
    errno: int = errno.EPERM

    def block(self, number: int) -> list[Instruction]:
        return _by_value(self, number, listed=bpf.give(bpf.ALLOW), other=bpf.fail(self.errno))


def _by_value(
    rule: RefuseValues | OnlyValues, number: int, *, listed: Instruction, other: Instruction
) -> list[Instruction]:
    """What is given when the rule's argument is one of its values, and when it is not."""
    count = len(rule.values)
    tests = [Instruction(bpf.JUMP_EQUAL, count - i, 0, value) for i, value in enumerate(rule.values)]
    body = [bpf.load_argument(rule.argument), *tests, other, listed]
    return [Instruction(bpf.JUMP_EQUAL, 0, len(body), number), *body]


@dataclass(frozen=True)
class OnlySockets:
    """Refuse `socket` and `socketpair` but for the allowed families and NETLINK_ROUTE."""

    call: str

    def block(self, number: int) -> list[Instruction]:
        families = [
            Instruction(bpf.JUMP_EQUAL, len(_FAMILIES) - i + 3, 0, family)
            for i, family in enumerate(_FAMILIES)
        ]
        body = [
            bpf.load_argument(0),
            *families,
            Instruction(bpf.JUMP_EQUAL, 0, 2, _AF_NETLINK),
            bpf.load_argument(2),
            Instruction(bpf.JUMP_EQUAL, 1, 0, _NETLINK_ROUTE),
            bpf.fail(errno.EAFNOSUPPORT),
            bpf.give(bpf.ALLOW),
        ]
        return [Instruction(bpf.JUMP_EQUAL, 0, len(body), number), *body]


@dataclass(frozen=True)
class AskForStreams:
    """Of `socket`: allow unix ones, ask for IPv4's streams, which somebody else makes, and refuse all others."""

    call: str

    def block(self, number: int) -> list[Instruction]:
        kinds = [
            Instruction(bpf.JUMP_EQUAL, len(_STREAM_KINDS) - i, 0, kind)
            for i, kind in enumerate(_STREAM_KINDS)
        ]
        refused = bpf.fail(errno.EAFNOSUPPORT)
        body = [
            bpf.load_argument(0),
            Instruction(bpf.JUMP_EQUAL, 0, 1, socket.AF_UNIX.value),
            bpf.give(bpf.ALLOW),
            Instruction(bpf.JUMP_EQUAL, 1, 0, socket.AF_INET.value),
            refused,
            bpf.load_argument(1),
            *kinds,
            refused,
            bpf.load_argument(2),
            Instruction(bpf.JUMP_EQUAL, 2, 0, 0),
            Instruction(bpf.JUMP_EQUAL, 1, 0, socket.IPPROTO_TCP),
            refused,
            bpf.give(bpf.ASK),
        ]
        return [Instruction(bpf.JUMP_EQUAL, 0, len(body), number), *body]


@dataclass(frozen=True)
class OnlyOptions:
    """Of `setsockopt`: refuse all options of one level but these."""

    call: str
    level: int
    options: tuple[int, ...]
    errno: int = errno.EPERM

    def block(self, number: int) -> list[Instruction]:
        count = len(self.options)
        tests = [Instruction(bpf.JUMP_EQUAL, count - i, 0, option) for i, option in enumerate(self.options)]
        body = [
            bpf.load_argument(1),
            Instruction(bpf.JUMP_EQUAL, 0, count + 2, self.level),
            bpf.load_argument(2),
            *tests,
            bpf.fail(self.errno),
            bpf.give(bpf.ALLOW),
        ]
        return [Instruction(bpf.JUMP_EQUAL, 0, len(body), number), *body]


Rule = Refuse | RefuseBits | RefuseValues | OnlyValues | OnlySockets | AskForStreams | OnlyOptions

_PRIVILEGED = (
    *("acct", "add_key", "adjtimex", "bpf", "chroot", "clock_adjtime", "clock_settime", "delete_module"),
    *("fanotify_init", "finit_module", "fsconfig", "fsmount", "fsopen", "fspick", "init_module", "ioperm"),
    *("iopl", "kcmp", "kexec_file_load", "kexec_load", "keyctl", "lookup_dcookie", "modify_ldt", "mount"),
    *("mount_setattr", "move_mount", "open_by_handle_at", "open_tree", "open_tree_attr", "perf_event_open"),
    *("pidfd_getfd", "pivot_root", "process_vm_readv", "process_vm_writev", "quotactl", "quotactl_fd"),
    *("reboot", "request_key", "setdomainname", "sethostname", "settimeofday", "swapoff", "swapon", "syslog"),
    *("umount2", "userfaultfd", "vhangup"),
)


def sandbox_rules(*, joins_user_namespace: bool) -> list[Rule]:
    """The rules of a whole sandbox, its daemon included, in the order in which they are looked at.

    Args:
        joins_user_namespace: the first process in the sandbox still has to enter a user namespace that was
            made for it; `setns` is then left for that one type. Nothing inside can use it: a command owns
            no namespace, may make none, and is not privileged in the one it is in.
    """
    setns = OnlyValues("setns", 1, (CLONE_NEWUSER,)) if joins_user_namespace else Refuse("setns")
    return [OnlySockets("socket"), OnlySockets("socketpair"), setns, *_common_rules()]


def command_rules(*, streams: bool = True) -> list[Rule]:
    """The rules of each command where this filter keeps the egress policy: no socket but of unix and loopback.

    Args:
        streams: whoever lays the filter gives sockets of loopback (`streams.py`): IPv4's streams are asked for. Else
            there are unix ones alone.

    What is not a socket could make or take one: io_uring makes them on its own, a debugger or `pidfd_getfd`
    takes the daemon's, a new user namespace brings privileges, a driver reaches past the kernel. All of that is
    refused for every sandbox.
    """
    unix = (socket.AF_UNIX.value,)
    pairs = OnlyValues("socketpair", 0, unix, errno.EAFNOSUPPORT)
    if streams:
        options = OnlyOptions("setsockopt", socket.IPPROTO_IP, _HARMLESS_OF_IP)
        sockets: list[Rule] = [AskForStreams("socket"), options, pairs]
    else:
        sockets = [OnlyValues("socket", 0, unix, errno.EAFNOSUPPORT), pairs]
    return [*sockets, Refuse("setns"), *_common_rules()]


def _common_rules() -> list[Rule]:
    return [
        RefuseBits("clone", 0, _NEW_NAMESPACES),
        RefuseBits("unshare", 0, _NEW_NAMESPACES | _CLONE_NEWTIME),
        # Its flags are in memory, where a filter cannot look; libc falls back to clone on ENOSYS.
        Refuse("clone3", errno.ENOSYS),
        # A debugger may trace what it starts itself; it may not seize what runs already.
        RefuseValues("ptrace", 0, (_PTRACE_ATTACH, _PTRACE_SEIZE)),
        # A command of the daemon's own uid could else set the daemon's RLIMIT_CPU, which kills even pid 1.
        OnlyValues("prlimit64", 0, (0,)),
        RefuseValues("ioctl", 1, (_TIOCSTI, _TIOCLINUX)),
        # ENOSYS, so that libuv and others fall back to epoll.
        *(Refuse(f"io_uring_{verb}", errno.ENOSYS) for verb in ("setup", "enter", "register")),
        *(Refuse(call) for call in _PRIVILEGED),
    ]


def build(processor: Processor, rules: Iterable[Rule]) -> bytes:
    """The filter for one processor, as bytes for `install` or `bwrap --seccomp`.

    Calls of another arch (32-bit on a 64-bit kernel) end the process: their numbers mean other calls. Calls that
    are newer than the table (x32's, whose numbers lie above, among them) are answered as by a kernel that has none:
    whatever way a later kernel adds is closed until somebody has looked at it. A rule for a call that the processor
    does not have (`iopl` on arm64) is left out.
    """
    program = [
        bpf.load(bpf.ARCH_OFFSET),
        Instruction(bpf.JUMP_EQUAL, 1, 0, processor.audit_arch),
        bpf.give(bpf.KILL_PROCESS),
        bpf.load(bpf.NUMBER_OFFSET),
        Instruction(bpf.JUMP_AT_LEAST, 0, 1, NEWEST_CALL + 1),
        bpf.fail(errno.ENOSYS),
    ]
    for rule in rules:
        if rule.call in processor.numbers:
            program += rule.block(processor.numbers[rule.call])
    program.append(bpf.give(bpf.ALLOW))
    return bpf.encode(program)
