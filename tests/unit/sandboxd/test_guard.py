"""The egress guard on real commands: what it closes, what it leaves, and that it is never claimed without proof."""

import asyncio
import logging
import platform
import signal
import struct
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sandboxd import guard
from sandboxd.execcore.host import ProcessHost
from sandboxd.execcore.spec import CommandUser, Outcome
from sandboxd.seccomp.rules import Refuse, RefuseValues, command_rules

from tests.unit.sandboxd.guarded import (
    PYTHON,
    UNSAID,
    as_root,
    lay,
    needs_python,
    on_host,
    processor,
    run,
    text,
)

pytestmark = pytest.mark.req("NOD-457")

on_x86 = pytest.mark.skipif(platform.machine() != "x86_64", reason="only x86_64 has further tables of calls")


I386_CALLS = "b867010000 bb02000000 b901000000 31d2 cd80 b801000000 31db cd80"
"""mov eax, 359 (socket); mov ebx, 2; mov ecx, 1; xor edx, edx; int 0x80; mov eax, 1 (exit); xor ebx, ebx; int 0x80"""


@pytest.fixture
def i386(tmp_path: Path) -> Path:
    """A whole program for i386 that makes a TCP socket and ends with 0; skips where the kernel runs none."""
    code, base = bytes.fromhex(I386_CALLS), 0x08048000
    size = 84 + len(code)
    identity = b"\x7fELF\x01\x01\x01".ljust(16, b"\0")
    header = struct.pack("<HHIIIIIHHHHHH", 2, 3, 1, base + 84, 52, 0, 0, 52, 32, 1, 40, 0, 0)
    segment = struct.pack("<IIIIIIII", 1, 0, base, base, size, size, 5, 0x1000)
    program = tmp_path / "i386"
    program.write_bytes(identity + header + segment + code)
    for path in (program, tmp_path, *tmp_path.parents):
        if path.stat().st_mode & 0o001 == 0:
            path.chmod(path.stat().st_mode | 0o011)
    try:
        subprocess.run([program], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"this kernel runs no 32-bit programs: {error}")
    return program


def guarded(*argv: str) -> Outcome:
    """One command behind the guard, which holds."""

    async def story(host: ProcessHost) -> Outcome:
        assert (await guard.enforcer(host, UNSAID, PYTHON)).by == "seccomp"
        return await run(host, *argv)

    return on_host(story)


@as_root
@pytest.mark.parametrize(
    "code",
    [
        "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
        "import socket; socket.socket(socket.AF_INET6, socket.SOCK_STREAM)",
        "import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
        "import socket; socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)",
        "import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
        "import socket; socket.socketpair(socket.AF_INET)",
    ],
)
def test_no_socket_of_a_network_can_be_made(code: str) -> None:
    outcome = guarded(PYTHON, "-c", code)
    assert outcome.exit_code == 1
    assert "Address family not supported" in text(outcome)


@as_root
def test_what_a_command_starts_is_guarded_as_well_and_cannot_take_it_off() -> None:
    outcome = guarded(
        PYTHON,
        "-c",
        "import ctypes, subprocess, sys\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "print(libc.prctl(22, 0, 0, 0, 0), libc.prctl(38, 0, 0, 0, 0))\n"
        "code = 'import socket; socket.socket(type=socket.SOCK_DGRAM)'\n"
        "print(subprocess.run(['setsid', sys.executable, '-c', code], stderr=subprocess.DEVNULL).returncode)\n",
    )
    assert text(outcome) == "-1 -1\n1\n"


@as_root
@on_x86
def test_a_32_bit_program_dies_of_its_first_call(i386: Path) -> None:
    outcome = guarded(str(i386))
    assert (outcome.exit_code, outcome.signal) == (None, signal.SIGSYS)


@as_root
@pytest.mark.parametrize(
    "command",
    [
        f'{PYTHON} -c \'import socket; a, b = socket.socketpair(); a.send(b"x"); assert b.recv(1) == b"x"\'',
        f"{PYTHON} -c 'import multiprocessing as m; assert m.Pool(2).map(abs, [-1, 2]) == [1, 2]'",
        f"{PYTHON} -c 'import threading; t = threading.Thread(target=print); t.start(); t.join()'",
        f"{PYTHON} -c 'import asyncio; asyncio.run(asyncio.create_subprocess_exec(\"true\"))'",
        "cd $(mktemp -d) && git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x",
        "cat /etc/passwd | sort | uniq -c | wc -l && (sleep 0.01 & wait) && exec 3<>/dev/null",
        "ps aux >/dev/null",
    ],
    ids=["unix-sockets", "multiprocessing", "threads", "asyncio", "git", "pipes", "ps"],
)
def test_what_needs_no_network_works(command: str) -> None:
    outcome = guarded("/bin/bash", "-ec", command)
    assert outcome.exit_code == 0, text(outcome)


@as_root
@pytest.mark.parametrize(
    ("call", "way"),
    [("socket", "AF_INET"), ("io_uring_setup", "io_uring"), ("unshare", "user namespaces")],
)
def test_a_hole_in_the_filter_is_found(call: str, way: str) -> None:
    async def story(host: ProcessHost) -> list[str]:
        lay(host, [rule for rule in command_rules() if rule.call != call])
        return await guard.probe(host, PYTHON)

    assert f"open: {way}" in on_host(story)


@as_root
@on_x86
@pytest.mark.usefixtures("i386")
def test_a_second_table_of_calls_is_found() -> None:
    async def story(host: ProcessHost) -> list[str]:
        return await guard.probe(host, PYTHON)

    assert "open: 32-bit calls" in on_host(story)


@as_root
def test_a_guard_that_takes_too_much_does_not_count() -> None:
    async def story(host: ProcessHost) -> str | None:
        lay(host, [Refuse("socket")])
        return (await guard.enforcer(host, UNSAID, PYTHON)).by

    assert on_host(story) is None


@as_root
def test_where_the_kernel_takes_no_filter_none_is_claimed(caplog: pytest.LogCaptureFixture) -> None:
    prctl = {"x86_64": 157, "aarch64": 167}[processor().name]
    old_kernel = replace(processor(), numbers={"prctl": prctl, "seccomp": processor().numbers["seccomp"]})

    async def story(host: ProcessHost) -> str | None:
        lay(host, [RefuseValues("prctl", 0, (22,), errno=22), Refuse("seccomp", errno=22)], on=old_kernel)
        return (await guard.enforcer(host, UNSAID, PYTHON)).by

    with caplog.at_level(logging.ERROR):
        assert on_host(story) is None
    assert "the kernel takes no filter of system calls: Invalid argument" in caplog.text


@needs_python
def test_commands_of_the_daemons_own_user_are_not_called_guarded(caplog: pytest.LogCaptureFixture) -> None:
    async def story(host: ProcessHost) -> str | None:
        return (await guard.enforcer(host, UNSAID, PYTHON)).by

    with caplog.at_level(logging.ERROR):
        assert on_host(story, CommandUser()) is None
    assert "commands are its own user" in caplog.text


@pytest.mark.parametrize("interpreter", ["/nowhere/python3", "/bin/true", "/bin/false"])
def test_a_probe_that_says_nothing_is_no_proof(interpreter: str) -> None:
    async def story(host: ProcessHost) -> str | None:
        return (await guard.enforcer(host, UNSAID, interpreter)).by

    assert on_host(story, CommandUser()) is None


@pytest.mark.parametrize(
    ("said", "enforcer"), [({"guard": "network"}, "network"), ({"guard": None, "optIn": True}, None)]
)
def test_the_launchers_word_counts_and_its_sandboxes_keep_their_own_loopback(
    said: dict[str, Any], enforcer: str | None
) -> None:
    async def story(host: ProcessHost) -> str:
        assert (await guard.enforcer(host, said)).by == enforcer
        return text(await run(host, "/bin/grep", "Seccomp:", "/proc/self/status"))

    mine = Path("/proc/self/status").read_text().partition("Seccomp:")[2].split()[0]
    assert on_host(story, CommandUser()).split() == ["Seccomp:", mine]


@needs_python
def test_the_daemons_own_threads_are_not_guarded() -> None:
    async def story(host: ProcessHost) -> None:
        await guard.enforcer(host, UNSAID, PYTHON)
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
        writer.close()
        await writer.wait_closed()

    async def told(host: ProcessHost) -> None:
        nonlocal server
        server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
        async with server:
            await story(host)

    server: Any = None
    on_host(told, CommandUser())
