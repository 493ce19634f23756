"""System calls that a filter asks about: they wait until they are answered (seccomp_unotify(2), Linux 5.9)."""

import fcntl
import os
import struct
from dataclasses import dataclass
from errno import EINVAL

from . import bpf

# struct seccomp_notif: id, pid, flags, and the call; seccomp_notif_resp: id, value, error, flags;
# seccomp_notif_addfd: id, flags, our descriptor, its number there, flags of that one
_HEAD = struct.Struct("<QII")
_RESPONSE = struct.Struct("<QqiI")
_DESCRIPTOR = struct.Struct("<QIIII")
_WRITES, _READS = 1, 2
_AND_ANSWER = 1 << 1
"""Of a descriptor that is added: it is the answer, in the same step (Linux 5.14)."""


def _request(number: int, direction: int, size: int) -> int:
    return direction << 30 | size << 16 | ord("!") << 8 | number


_RECEIVE = _request(0, _WRITES | _READS, _HEAD.size + bpf.DATA.size)
_ANSWER = _request(1, _WRITES | _READS, _RESPONSE.size)
_ADD_DESCRIPTOR = _request(3, _WRITES, _DESCRIPTOR.size)


@dataclass(frozen=True)
class Question:
    """A call that waits. Its arguments are numbers: what they point to may change at any time, and is not read."""

    id: int
    arguments: tuple[int, ...]


def receive(listener: int) -> Question:
    """The next question; waits for it.

    Raises:
        OSError: ENOENT: who asked has gone meanwhile.
    """
    data = bytearray(_HEAD.size + bpf.DATA.size)
    fcntl.ioctl(listener, _RECEIVE, data)
    number, _, _ = _HEAD.unpack_from(data)
    return Question(number, bpf.DATA.unpack_from(data, _HEAD.size)[3:])


def give(listener: int, question: Question, descriptor: int, *, close_on_exec: bool) -> None:
    """Answers with a copy of a descriptor.

    On an older kernel it takes two steps, and who gets a signal between them keeps a copy that it does not know of.

    Raises:
        OSError: who asked has gone (ENOENT), or can hold no further one (EMFILE); then nothing is answered.
    """
    flags = os.O_CLOEXEC if close_on_exec else 0
    try:
        _add(listener, _DESCRIPTOR.pack(question.id, _AND_ANSWER, descriptor, 0, flags))
    except OSError as error:
        if error.errno != EINVAL:
            raise
        copy = _add(listener, _DESCRIPTOR.pack(question.id, 0, descriptor, 0, flags))
        _answer(listener, question, copy, 0)


def _add(listener: int, order: bytes) -> int:
    return fcntl.ioctl(listener, _ADD_DESCRIPTOR, bytearray(order))


def refuse(listener: int, question: Question, errno: int) -> None:
    """Answers with an error. Raises OSError: who asked has gone."""
    _answer(listener, question, 0, errno)


def _answer(listener: int, question: Question, value: int, errno: int) -> None:
    fcntl.ioctl(listener, _ANSWER, bytearray(_RESPONSE.pack(question.id, value, -errno, 0)))
