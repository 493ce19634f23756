"""The daemon against its own commands: its secrets cannot be read, it cannot be ended."""

from __future__ import annotations

import json

import pytest

from tests.integration.sandbox.bench import Driver, Guest

pytestmark = pytest.mark.req("NOD-042")

SECRETS = ("enrol-secret", "token-in-memory")
READ_MEMORY = """
import os, re
try:
    maps = open('/proc/1/maps').read()
    memory = open('/proc/1/mem', 'rb', 0)
    for line in maps.splitlines():
        start, end = (int(x, 16) for x in line.split()[0].split('-'))
        if 'rw' in line.split()[1]:
            memory.seek(start); data = memory.read(end - start)
            print(re.findall(rb'token-in-memory-[a-z-]+', data))
except OSError as error:
    print('refused', error.errno)
"""
LIBC = "import ctypes, os; libc = ctypes.CDLL(None, use_errno=True)\n"


def test_its_users_are_as_the_mode_says(driver: Driver, guest: Guest) -> None:
    about = guest.ask({})
    assert about["pid"] == 1
    assert json.loads(about["isolation"])["isolated"] is True
    command_uid = int(guest.sh("id -u").out)
    assert (about["uid"] != command_uid) == (driver.mode == "root")


@pytest.mark.parametrize(
    "path", ["environ", "maps", "auxv", "fd/", "map_files/", "task/1/environ", "root/", "cwd/"]
)
def test_proc_shows_nothing_of_it(guest: Guest, path: str) -> None:
    done = guest.sh(f"ls /proc/1/{path}" if path.endswith("/") else f"cat /proc/1/{path}")
    assert done.code != 0
    assert not any(secret in done.out for secret in SECRETS)


def test_its_memory_cannot_be_read(guest: Guest) -> None:
    assert guest.python(READ_MEMORY).out.startswith("refused")


@pytest.mark.parametrize("request_number", [16, 0x4206], ids=["attach", "seize"])
def test_it_cannot_be_traced(guest: Guest, request_number: int) -> None:
    done = guest.python(LIBC + f"print(libc.ptrace({request_number}, 1, 0, 0), ctypes.get_errno())")
    assert done.out == "-1 1\n"


def test_its_descriptors_cannot_be_taken(guest: Guest) -> None:
    code = (
        LIBC
        + "fd = os.pidfd_open(1)\nfor n in range(3, 20): print(libc.syscall(438, fd, n, 0), ctypes.get_errno())"
    )
    assert set(guest.python(code).out.splitlines()) == {"-1 1"}


def test_nothing_readable_holds_a_secret(driver: Driver, guest: Guest) -> None:
    files = "/proc/1/{cmdline,comm,environ,stat,status,mountinfo,limits} /tmp /workspace /home /run /dev/shm"
    assert guest.sh(f"grep -rlas -e token-in-mem[o]ry -e enrol-secr[e]t {files}").out == ""
    state = guest.sh("cat /var/lib/sandboxd/secret")
    if driver.mode == "root":
        assert state.code != 0
        assert guest.sh("ls /var/lib/sandboxd").code != 0


@pytest.mark.parametrize(
    "signal", ["KILL", "TERM", "INT", "HUP", "QUIT", "STOP", "SEGV", "USR1", "ABRT", "PIPE", "RTMIN"]
)
def test_no_signal_ends_it(guest: Guest, signal: str) -> None:
    guest.sh(f"kill -{signal} 1; kill -{signal} -- -1; kill -{signal} -1; true")
    assert guest.sh("echo still here").out == "still here\n"


def test_killing_everything_does_not_end_it(guest: Guest) -> None:
    guest.sh("kill -9 -1")
    assert guest.sh("echo still here").out == "still here\n"


def test_its_threads_cannot_be_signalled_to_death(guest: Guest) -> None:
    guest.sh("for t in /proc/1/task/*; do kill -TERM ${t##*/}; kill -9 ${t##*/}; done; true")
    assert guest.sh("echo still here").out == "still here\n"


def test_its_limits_cannot_be_lowered(guest: Guest) -> None:
    code = "import resource\ntry: resource.prlimit(1, resource.RLIMIT_CPU, (0, 0))\nexcept PermissionError: print('refused')"
    assert guest.python(code).out == "refused\n"
    assert guest.sh("for i in 1 2 3; do :; done; echo still here").out == "still here\n"


def test_its_code_cannot_be_changed(guest: Guest) -> None:
    assert guest.sh("echo > /opt/sandboxd/app/standin/__main__.py").code != 0
    assert guest.sh("echo > /opt/sandboxd/enter.py").code != 0
