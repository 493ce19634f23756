"""Classic BPF for seccomp, written and read without any library.

A filter is a list of rules, one per system call; each rule becomes a block of instructions that either
decides the call or falls through to the next block. So no jump crosses a block, and a block can be read alone.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass

# linux/bpf_common.h and linux/seccomp.h
LOAD_WORD = 0x20  # BPF_LD | BPF_W | BPF_ABS
JUMP_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
JUMP_AT_LEAST = 0x35  # BPF_JMP | BPF_JGE | BPF_K
JUMP_ANY_BIT = 0x45  # BPF_JMP | BPF_JSET | BPF_K
RETURN = 0x06  # BPF_RET | BPF_K

ALLOW = 0x7FFF0000
KILL_PROCESS = 0x80000000
ERRNO = 0x00050000
ASK = 0x7FC00000
"""The call waits for what somebody else answers (`notifications.py`)."""

# struct seccomp_data: int nr; u32 arch; u64 instruction_pointer; u64 args[6]
DATA = struct.Struct("<iIQ6Q")
NUMBER_OFFSET = 0
ARCH_OFFSET = 4
_INSTRUCTION = struct.Struct("<HBBI")


@dataclass(frozen=True)
class Instruction:
    """One `struct sock_filter`: code, jump when true, jump when false, operand."""

    code: int
    jump_true: int
    jump_false: int
    operand: int


def load(offset: int) -> Instruction:
    """Load the 32-bit word at `offset` of the call's data."""
    return Instruction(LOAD_WORD, 0, 0, offset)


def load_argument(index: int) -> Instruction:
    """Load the low half of argument `index`: every argument that is judged here is an int in the kernel."""
    return load(16 + 8 * index)


def give(action: int) -> Instruction:
    """End with `action`."""
    return Instruction(RETURN, 0, 0, action)


def fail(errno: int) -> Instruction:
    """End the call with `errno`, without running it."""
    return give(ERRNO | errno)


def encode(program: Iterable[Instruction]) -> bytes:
    """The bytes that `bwrap --seccomp` and `prctl(PR_SET_SECCOMP)` take."""
    return b"".join(_INSTRUCTION.pack(i.code, i.jump_true, i.jump_false, i.operand) for i in program)


def decode(program: bytes) -> list[Instruction]:
    """The inverse of `encode`."""
    return [Instruction(*fields) for fields in _INSTRUCTION.iter_unpack(program)]


def evaluate(program: bytes, number: int, arch: int, arguments: Iterable[int] = ()) -> int:
    """What the kernel would do with a call: the action that the filter ends with.

    With this a filter for another processor can be tested on this one.

    Args:
        program: encoded filter.
        number: of the system call.
        arch: AUDIT_ARCH_… of the caller.
        arguments: up to six.
    """
    padded = [*arguments, 0, 0, 0, 0, 0, 0][:6]
    data = DATA.pack(number, arch, 0, *(value & 0xFFFFFFFFFFFFFFFF for value in padded))
    instructions = decode(program)
    position, accumulator = 0, 0
    while True:
        step = instructions[position]
        position += 1
        if step.code == RETURN:
            return step.operand
        if step.code == LOAD_WORD:
            accumulator = int.from_bytes(data[step.operand : step.operand + 4], "little")
        else:
            taken = _compare(step, accumulator)
            position += step.jump_true if taken else step.jump_false


def _compare(step: Instruction, accumulator: int) -> bool:
    if step.code == JUMP_EQUAL:
        return accumulator == step.operand
    if step.code == JUMP_AT_LEAST:
        return accumulator >= step.operand
    if step.code == JUMP_ANY_BIT:
        return bool(accumulator & step.operand)
    raise ValueError(f"instruction {step.code:#x} is not one that this module writes")
