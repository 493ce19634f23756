"""Puts a filter on a thread."""

import ctypes
import errno
import os

from . import bpf
from .syscalls import this_processor

_PR_SET_SECCOMP = 22
_SECCOMP_MODE_FILTER = 2
_SET_MODE_FILTER = 1
_NEW_LISTENER = 1 << 3
_WAIT_KILLABLE = 1 << 5
"""Who asks is not disturbed by signals once the question is read (Linux 5.19): the call would be made twice."""


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
    argument, _instructions = _argument(program)
    if libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(argument), 0, 0) != 0:
        raise _refused()


def install_asking(program: bytes) -> int:
    """The same for a filter that asks (`bpf.ASK`). Returns the descriptor on which the questions come.

    Nobody else has the descriptor, and no program that is executed gets it; when it is closed, whoever asks gets
    ENOSYS. A thread can have one such filter.

    Raises:
        OSError: the kernel refused it.
    """
    processor = this_processor()
    if processor is None:
        raise OSError("there is no filter for this processor")
    libc = ctypes.CDLL(None, use_errno=True)
    argument, _instructions = _argument(program)
    number = processor.numbers["seccomp"]
    for flags in (_NEW_LISTENER | _WAIT_KILLABLE, _NEW_LISTENER):
        listener = libc.syscall(number, _SET_MODE_FILTER, flags, ctypes.byref(argument))
        if listener >= 0:
            return int(listener)
        if ctypes.get_errno() != errno.EINVAL:
            break
    raise _refused()


def _argument(program: bytes) -> "tuple[_Program, ctypes.Array[ctypes.c_char]]":
    """What the kernel reads, and the memory that it points to."""
    instructions = ctypes.create_string_buffer(program, len(program))
    return _Program(len(bpf.decode(program)), ctypes.cast(instructions, ctypes.c_void_p)), instructions


def _refused() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, f"the kernel takes no filter of system calls: {os.strerror(number)}")
