"""A network beside this machine's, as the one that a sandbox on AWS stands in."""

import secrets
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

needs_networks = pytest.mark.skipif(shutil.which("ip") is None, reason="needs ip(8), which makes networks")

_CALL = """
import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=5)
    print("connected")
except OSError as error:
    print(type(error).__name__)
"""


class OtherNetwork:
    """One machine in a network namespace, and this machine's address in its network."""

    HERE, THERE = "198.18.77.1", "198.18.77.2"

    def __init__(self, name: str) -> None:
        self._name = name

    def heard(self) -> int:
        """IP packets that have come there."""
        with_names, figures = (
            line.split()
            for line in self._there("cat", "/proc/net/snmp").splitlines()
            if line.startswith("Ip: ")
        )
        return int(dict(zip(with_names, figures, strict=True))["InReceives"])

    def calls(self, port: int) -> str:
        """How a call from there to this machine ends."""
        return self._there("/usr/bin/python3", "-c", _CALL, self.HERE, str(port)).strip()

    def _there(self, *words: str) -> str:
        done = subprocess.run(
            ["ip", "netns", "exec", self._name, *words], check=True, capture_output=True, text=True
        )
        return done.stdout


@contextmanager
def other_network() -> Iterator[OtherNetwork]:
    """Makes it, and takes it down."""
    name = f"nodus-{secrets.token_hex(3)}"
    ours, theirs = f"{name[-6:]}-a", f"{name[-6:]}-b"
    _ip("netns", "add", name)
    try:
        _ip("link", "add", ours, "type", "veth", "peer", "name", theirs, "netns", name)
        _ip("addr", "add", f"{OtherNetwork.HERE}/30", "dev", ours)
        _ip("link", "set", ours, "up")
        _ip("-n", name, "addr", "add", f"{OtherNetwork.THERE}/30", "dev", theirs)
        _ip("-n", name, "link", "set", theirs, "up")
        yield OtherNetwork(name)
    finally:
        _ip("netns", "del", name)


def listens_not(port: int) -> bool:
    """Whether nobody listens at a port of this machine."""
    rows = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return not any(row.split()[1].endswith(f":{port:04X}") and row.split()[3] == "0A" for row in rows)


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)
