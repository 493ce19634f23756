"""Numbers of the system calls that the filters name, per processor.

Sources: arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h of Linux 6.18;
a unit test compares them with libseccomp where that is installed.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass

NEWEST_CALL = 469
"""The last call of Linux 6.18 (`file_setattr`), the same on every processor."""

# Since Linux 5.1 new calls have one number everywhere.
_SAME_EVERYWHERE = {
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "clone3": 435,
    "pidfd_getfd": 438,
    "mount_setattr": 442,
    "quotactl_fd": 443,
    "open_tree_attr": 467,
}

_X86_64 = _SAME_EVERYWHERE | {
    "ioctl": 16,
    "socket": 41,
    "socketpair": 53,
    "setsockopt": 54,
    "clone": 56,
    "ptrace": 101,
    "syslog": 103,
    "vhangup": 153,
    "modify_ldt": 154,
    "pivot_root": 155,
    "adjtimex": 159,
    "chroot": 161,
    "acct": 163,
    "settimeofday": 164,
    "mount": 165,
    "umount2": 166,
    "swapon": 167,
    "swapoff": 168,
    "reboot": 169,
    "sethostname": 170,
    "setdomainname": 171,
    "iopl": 172,
    "ioperm": 173,
    "init_module": 175,
    "delete_module": 176,
    "quotactl": 179,
    "lookup_dcookie": 212,
    "clock_settime": 227,
    "kexec_load": 246,
    "add_key": 248,
    "request_key": 249,
    "keyctl": 250,
    "unshare": 272,
    "perf_event_open": 298,
    "fanotify_init": 300,
    "prlimit64": 302,
    "open_by_handle_at": 304,
    "clock_adjtime": 305,
    "setns": 308,
    "process_vm_readv": 310,
    "process_vm_writev": 311,
    "kcmp": 312,
    "finit_module": 313,
    "seccomp": 317,
    "kexec_file_load": 320,
    "bpf": 321,
    "userfaultfd": 323,
}

_AARCH64 = _SAME_EVERYWHERE | {
    "lookup_dcookie": 18,
    "ioctl": 29,
    "umount2": 39,
    "mount": 40,
    "pivot_root": 41,
    "chroot": 51,
    "vhangup": 58,
    "quotactl": 60,
    "acct": 89,
    "unshare": 97,
    "kexec_load": 104,
    "init_module": 105,
    "delete_module": 106,
    "clock_settime": 112,
    "syslog": 116,
    "ptrace": 117,
    "reboot": 142,
    "sethostname": 161,
    "setdomainname": 162,
    "settimeofday": 170,
    "adjtimex": 171,
    "socket": 198,
    "socketpair": 199,
    "setsockopt": 208,
    "add_key": 217,
    "request_key": 218,
    "keyctl": 219,
    "clone": 220,
    "swapon": 224,
    "swapoff": 225,
    "perf_event_open": 241,
    "fanotify_init": 262,
    "open_by_handle_at": 265,
    "clock_adjtime": 266,
    "prlimit64": 261,
    "setns": 268,
    "process_vm_readv": 270,
    "process_vm_writev": 271,
    "kcmp": 272,
    "finit_module": 273,
    "seccomp": 277,
    "bpf": 280,
    "userfaultfd": 282,
    "kexec_file_load": 294,
}


@dataclass(frozen=True)
class Processor:
    """A processor that filters can be made for.

    Args:
        name: as `uname -m` says it.
        audit_arch: AUDIT_ARCH_… of linux/audit.h.
        numbers: system call name -> number.
    """

    name: str
    audit_arch: int
    numbers: Mapping[str, int]


X86_64 = Processor("x86_64", 0xC000003E, _X86_64)
AARCH64 = Processor("aarch64", 0xC00000B7, _AARCH64)
PROCESSORS = {"x86_64": X86_64, "aarch64": AARCH64, "arm64": AARCH64}


def this_processor() -> Processor | None:
    """The processor of this machine; None when no filter can be made for it."""
    return PROCESSORS.get(platform.machine())
