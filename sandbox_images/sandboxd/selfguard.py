"""Keeps the daemon's secrets from the commands it runs, and takes privileges from them before they start.

All of it is done to the daemon's own process and inherited by every child, so that nothing has to run between
fork and exec.
"""

import contextlib
import ctypes
import errno
import os
import resource
import struct

_PR_SET_DUMPABLE = 4
_PR_CAPBSET_READ = 23
_PR_CAPBSET_DROP = 24
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_LAST_CAPABILITY = 63
_CAPABILITY_VERSION_3 = 0x20080522


class GuardError(Exception):
    """The daemon cannot protect itself, and must not start."""


def hide_self() -> None:
    """Makes memory, environment and descriptors of this process unreadable for others of the same user.

    Raises:
        GuardError: the kernel refused.
    """
    _prctl(_PR_SET_DUMPABLE, 0, "hide itself from commands")
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    if soft != 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, hard))


def wipe_environ() -> None:
    """Empties the environment, and overwrites its bytes, which `/proc/PID/environ` would go on showing."""
    os.environ.clear()
    with open("/proc/self/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    start, end = int(fields[47]), int(fields[48])  # env_start and env_end, proc(5)
    if 0 < start < end:
        ctypes.memset(start, 0, end - start)


def forbid_new_privileges() -> None:
    """No setuid program gives a command more than it has.

    Raises:
        GuardError: the kernel refused.
    """
    _prctl(_PR_SET_NO_NEW_PRIVS, 1, "forbid new privileges")


def drop_inheritable_privileges() -> bool:
    """Empties the bounding, inheritable and ambient sets: what is executed from here on has no capability.

    The daemon keeps its own effective ones, which it needs to switch users and to signal.

    Returns:
        False where the bounding set cannot be emptied (no CAP_SETPCAP). Commands of another user have no
        capabilities all the same: changing the user clears them.
    """
    libc = _libc()
    libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    _clear_inheritable(libc)
    for capability in range(_LAST_CAPABILITY + 1):
        if libc.prctl(_PR_CAPBSET_READ, capability, 0, 0, 0) == 1:
            libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    return not any(
        libc.prctl(_PR_CAPBSET_READ, capability, 0, 0, 0) == 1 for capability in range(_LAST_CAPABILITY + 1)
    )


def become_subreaper() -> bool:
    """Lets orphans of commands fall to this process, as they do to pid 1; tells whether they will."""
    if os.getpid() == 1:
        return True
    return _libc().prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def keep_from_commands(fd: int) -> None:
    """Closes an inherited descriptor in every program that is executed.

    Raises:
        GuardError: there is no such descriptor.
    """
    try:
        os.set_inheritable(fd, False)
    except OSError as error:
        raise GuardError(f"Descriptor {fd} of NODUS_DIAL_FD is not open: {error.strerror}.") from error


def raise_descriptor_limit() -> None:
    """Uses as many descriptors as the hard limit allows (at most 65,536): each command needs some."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
    if soft < wanted:
        with contextlib.suppress(ValueError, OSError):  # the old limit does for fewer commands
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _prctl(option: int, value: int, purpose: str) -> None:
    if _libc().prctl(option, value, 0, 0, 0) != 0:
        code = ctypes.get_errno()
        raise GuardError(f"The daemon cannot {purpose}: {errno.errorcode.get(code, str(code))}.")


def _clear_inheritable(libc: ctypes.CDLL) -> None:
    header = ctypes.create_string_buffer(struct.pack("=Ii", _CAPABILITY_VERSION_3, 0))
    sets = ctypes.create_string_buffer(struct.calcsize("=6I"))
    if libc.capget(header, sets) != 0:
        return
    effective1, permitted1, _, effective2, permitted2, _ = struct.unpack("=6I", sets.raw[:24])
    sets = ctypes.create_string_buffer(
        struct.pack("=6I", effective1, permitted1, 0, effective2, permitted2, 0)
    )
    libc.capset(header, sets)
