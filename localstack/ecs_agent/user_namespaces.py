"""User namespaces made in advance, one for each slot, for the root mode with two users.

The mounts of a sandbox are made by real root, so its user namespace owns none of them, nor its network: it
only gives the daemon a `root` that is nobody outside and may become exactly the users of its own slot.

Namespaces are made by a program of its own (this file, `-I -S`), because making one needs a fork and the agent
has threads. Standard library only.
"""

from __future__ import annotations

import array
import ctypes
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

CLONE_NEWUSER = 0x10000000
# Host ids of slot 0. systemd's table of ids calls 1879048192…2147483647 unused; containers, homed and
# subordinate ids of people (100000 and up) lie elsewhere.
FIRST_HOST_ID = 1_879_048_192
IDS_PER_SLOT = 131_072
MAX_SLOTS = (2**31 - FIRST_HOST_ID) // IDS_PER_SLOT


MAKING_S = 20.0


class UserNamespaceError(Exception):
    """The kernel did not give a user namespace; the message says why."""


def host_id(slot: int, inside: int) -> int:
    """The host's number of user or group `inside` of a slot."""
    return FIRST_HOST_ID + slot * IDS_PER_SLOT + inside


def open_namespaces(count: int) -> list[int]:
    """Make `count` namespaces, for slots 0 to count - 1; answers a descriptor of each.

    In each of them further user namespaces are switched off (`user.max_user_namespaces` 0).

    Raises:
        UserNamespaceError: the kernel refused, for example ENOSPC where they are switched off.
    """
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        command = [sys.executable, "-I", "-S", __file__, str(theirs.fileno()), str(count)]
        maker = subprocess.Popen(
            command,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        theirs.close()
        ours.settimeout(MAKING_S)
        descriptors = _receive(ours, count)
        _, errors = maker.communicate()
    if len(descriptors) != count:
        for descriptor in descriptors:
            os.close(descriptor)
        raise UserNamespaceError(
            errors.strip().rpartition("\n")[2] or f"the maker ended with {maker.returncode}"
        )
    return descriptors


def _receive(channel: socket.socket, count: int) -> list[int]:
    descriptors: list[int] = []
    while len(descriptors) < count:
        data, more, _, _ = socket.recv_fds(channel, 1, 1, socket.MSG_CMSG_CLOEXEC)
        descriptors += more
        if not data:
            break
    return descriptors


def make(slot: int) -> int:
    """Make the namespace of one slot; answers its descriptor. Needs to be root, without threads."""
    here, there = socket.socketpair()
    child = os.fork()
    if child == 0:
        here.close()  # else it would never see the parent let go
        _become_member(there)
    there.close()
    with here:
        try:
            _expect(here)
            line = f"0 {host_id(slot, 0)} {IDS_PER_SLOT}\n"
            Path(f"/proc/{child}/uid_map").write_text(line)
            Path(f"/proc/{child}/gid_map").write_text(line)
            here.sendall(b"m")
            _expect(here)
            return os.open(f"/proc/{child}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
        finally:
            here.close()
            os.waitpid(child, 0)


def _become_member(channel: socket.socket) -> None:
    """In the child: enter a new namespace, switch off further ones, stay until the parent has it."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(CLONE_NEWUSER) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        channel.sendall(b"u")
        channel.recv(1)
        Path("/proc/sys/user/max_user_namespaces").write_text("0\n")
        channel.sendall(b"d")
        channel.recv(1)
    except OSError as error:
        channel.sendall(f"!{error}".encode())
        os._exit(1)
    os._exit(0)


def _expect(channel: socket.socket) -> None:
    word = channel.recv(200)
    if not word or word.startswith(b"!"):
        raise UserNamespaceError(word[1:].decode(errors="replace") or "the maker's child ended")


def main(words: Sequence[str]) -> int:
    """Send the descriptors of `count` namespaces over the socket with the given number."""
    with socket.socket(fileno=int(words[0])) as channel:
        for slot in range(int(words[1])):
            try:
                descriptor = make(slot)
            except (OSError, UserNamespaceError) as error:
                sys.stderr.write(f"{error}\n")
                return 1
            channel.sendmsg([b"n"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]))])
            os.close(descriptor)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
