"""Puts a filter on a thread."""

import ctypes
import os

from . import bpf

_PR_SET_SECCOMP = 22
_SECCOMP_MODE_FILTER = 2


class _Program(ctypes.Structure):
    """`struct sock_fprog`."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


def install(program: bytes) -> None:
    """Puts a filter on the calling thread and on all that it starts from here on; nothing takes it off again.

    It needs no privilege, only that the thread can get none (`PR_SET_NO_NEW_PRIVS`).

    Raises:
        OSError: the kernel refused it.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    instructions = ctypes.create_string_buffer(program, len(program))
    argument = _Program(len(bpf.decode(program)), ctypes.cast(instructions, ctypes.c_void_p))
    if libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(argument), 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"the kernel takes no filter of system calls: {os.strerror(number)}")
