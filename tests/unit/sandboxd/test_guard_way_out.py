"""Commands behind the egress guard whose policy lets something out: sockets that reach the proxy, and nothing else."""

import asyncio
import os
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from egress_proxy.policy import Policy
from egress_proxy.proxy import Proxy
from sandboxd import guard
from sandboxd.execcore.host import ProcessHost
from sandboxd.execcore.spec import CommandUser
from sandboxd.seccomp.install import install_asking
from sandboxd.seccomp.rules import OnlyOptions, Rule, build, command_rules
from sandboxd.seccomp.streams import MakeStream, StreamGiver, bound_stream, given_ports, proxy_listener
from sandboxd.wayout import WayOut

from tests.integration.greeting_host import greeting_host
from tests.unit.sandboxd.guarded import PYTHON, UNSAID, as_root, needs_python, on_host, processor, run, text

pytestmark = pytest.mark.req("NOD-457", "NOD-458", "NOD-460")

FETCH = """
import sys, urllib.error, urllib.request
proxy = urllib.request.ProxyHandler({{"http": "http://127.0.0.1:{port}"}})
try:
    print(urllib.request.build_opener(proxy).open("{url}", timeout=20).read().decode())
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())
"""
ERRNO = """
import errno, socket
def told(attempt):
    try:
        attempt()
        print("done")
    except OSError as error:
        print(errno.errorcode[error.errno])
"""


@pytest.fixture(scope="module")
def greeter() -> Iterator[int]:
    with greeting_host() as port:
        yield port


@pytest.fixture
def port() -> int:
    """A port that is free: several tests run at once, and each has a proxy."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def policy(greeter: int) -> Policy:
    trusted = [f"{name}.test:80=127.0.0.1:{greeter}" for name in ("files", "other")]
    return Policy.of("AllowList", ["files.test"], trusted)


def behind(kept: Policy, port: int, story: Callable[[ProcessHost], Awaitable[Any]]) -> Any:
    """Tells a story behind a guard that holds."""

    async def told(host: ProcessHost) -> Any:
        enforced = await guard.enforcer(host, UNSAID, PYTHON, kept, port)
        try:
            assert enforced.by == "seccomp"
            return await story(host)
        finally:
            enforced.close()

    return on_host(told)


def found(rules: list[Rule], make: MakeStream, port: int) -> list[str]:
    """What the probe finds behind these rules, where commands are given these sockets."""

    async def story(host: ProcessHost) -> list[str]:
        questions = host.confine(lambda: install_asking(build(processor(), rules)))
        giver = StreamGiver(questions, make)
        try:
            with proxy_listener(port):
                return await guard.probe(host, PYTHON, port)
        finally:
            giver.close()

    return on_host(story)


def python(kept: Policy, port: int, code: str) -> str:
    async def story(host: ProcessHost) -> str:
        return text(await run(host, PYTHON, "-c", code))

    return behind(kept, port, story)


@as_root
def test_what_the_policy_names_is_reached_and_nothing_else(greeter: int, port: int) -> None:
    async def story(host: ProcessHost) -> list[str]:
        codes = [FETCH.format(port=port, url=f"http://{name}.test/") for name in ("files", "other")]
        return [text(await run(host, PYTHON, "-c", code)) for code in codes]

    allowed, refused = behind(policy(greeter), port, story)
    assert allowed == "hello from files.test\n"
    assert refused.startswith("403 nodus egress: other.test:80 is closed: the egress policy AllowList")


@as_root
def test_a_program_that_knows_no_proxy_reaches_nothing(greeter: int, port: int) -> None:
    code = f"""{ERRNO}
for address in ("169.254.170.2", "169.254.169.254", "10.0.0.2", "1.1.1.1"):
    told(lambda: socket.create_connection((address, 80), timeout=5))
for family, kind in ((socket.AF_INET6, 1), (socket.AF_INET, 2), (socket.AF_INET, 3), (socket.AF_NETLINK, 3)):
    told(lambda: socket.socket(family, kind))
"""
    closed = {"EINVAL", "ENETUNREACH"}
    lines = python(policy(greeter), port, code).split()
    assert set(lines[:4]) <= closed
    assert lines[4:] == ["EAFNOSUPPORT"] * 4


@as_root
def test_a_socket_cannot_be_led_elsewhere(greeter: int, port: int) -> None:
    """Also not by one that was connected, disconnected, bound, or handed to another process."""
    code = f"""{ERRNO}
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
stream = socket.create_connection(("127.0.0.1", {port}))
print(libc.connect(stream.fileno(), bytes(16), 16))
told(lambda: stream.bind(("0.0.0.0", 0)))
told(lambda: stream.connect(("1.1.1.1", 80)))
here, there = socket.socketpair()
given = socket.socket()
socket.send_fds(here, [b"x"], [given.fileno()])
taken = socket.socket(fileno=socket.recv_fds(there, 1, 1)[1][0])
told(lambda: taken.bind(("0.0.0.0", 0)))
told(lambda: taken.connect(("1.1.1.1", 80)))
told(lambda: socket.socket().setsockopt(socket.IPPROTO_IP, 4, bytes((131, 7, 4, 127, 0, 0, 1, 0))))
"""
    said = python(policy(greeter), port, code).split()
    assert said == ["0", "EINVAL", "EINVAL", "EINVAL", "EINVAL", "EPERM"]


@as_root
def test_nobody_connects_to_a_socket_so_none_is_accepted(greeter: int, port: int) -> None:
    """What is accepted has its port only while it is connected: it could be bound anew, and lead anywhere."""
    code = f"""{ERRNO}
listener, stream = socket.socket(), socket.socket()
told(lambda: listener.setsockopt(socket.IPPROTO_IP, 21, 1))  # to take packets of commands
told(lambda: stream.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, 255))  # to be taken for the proxy
listener.listen()
stream.settimeout(0.5)
try:
    stream.connect(listener.getsockname())
except TimeoutError:
    print("silence")
told(lambda: stream.bind(("0.0.0.0", 0)))
"""
    assert python(policy(greeter), port, code).split() == ["EPERM", "EPERM", "silence", "EINVAL"]


@as_root
def test_no_group_is_joined_by_which_a_device_would_say_something(greeter: int, port: int) -> None:
    """The kernel announces a group at once, on any device: what is bound to loopback does not keep it from that."""
    code = f"""{ERRNO}
import struct
address = lambda text: struct.pack("HH4s120x", 2, 0, socket.inet_aton(text))
group, source = address("232.7.7.7"), address("192.0.2.1")
membership = socket.inet_aton("232.7.7.7") + socket.inet_aton("127.0.0.1") * 2
for option in range(32, 51):
    for value in (bytes(4), membership, *(struct.pack("Q", n) + group + source for n in (1, 2))):
        stream = socket.socket()
        told(lambda: stream.setsockopt(socket.IPPROTO_IP, option, value))
with open("/proc/net/igmp") as file:
    print("070707E8" in file.read())
"""
    said = python(policy(greeter), port, code).split()
    assert set(said[:-1]) == {"EPERM"}
    assert said[-1] == "False"


@as_root
@pytest.mark.parametrize(
    "code",
    [
        "a, b = socket.socketpair(); a.send(b'x'); assert b.recv(1) == b'x'",
        "s = socket.socket(); assert s.getblocking(); assert not s.get_inheritable()",
        "s = socket.socket(type=socket.SOCK_STREAM | socket.SOCK_NONBLOCK); assert not s.getblocking()",
        "s = socket.socket(); s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1); s.setsockopt(0, 1, 16)",
    ],
    ids=["unix", "flags", "non-blocking", "options"],
)
def test_sockets_are_what_programs_expect(greeter: int, port: int, code: str) -> None:
    assert python(policy(greeter), port, f"import socket\n{code}\nprint('fine')") == "fine\n"


@as_root
def test_many_at_once_and_programs_that_die_meanwhile(greeter: int, port: int) -> None:
    fetch = FETCH.format(port=port, url="http://files.test/")
    hasty = "import os, signal, socket\nfor _ in range(8):\n  if os.fork() == 0:\n    while True: socket.socket()\n"
    hasty += "import time; time.sleep(0.3); os.killpg(0, signal.SIGKILL)"

    async def story(host: ProcessHost) -> list[str]:
        outcomes = [run(host, PYTHON, "-c", hasty), *(run(host, PYTHON, "-c", fetch) for _ in range(6))]
        return [text(outcome) for outcome in (await asyncio.gather(*outcomes))[1:]]

    assert behind(policy(greeter), port, story) == ["hello from files.test\n"] * 6


@pytest.mark.parametrize(
    ("kernels", "given"),
    [
        ("32768\t60999\n", range(10_000, 32_768)),
        ("20000\t70000\n", range(10_000, 20_000)),
        ("1024\t65535\n", range(10_000, 61_000)),  # there are no others
        ("nonsense", range(10_000, 61_000)),
    ],
)
def test_commands_take_no_port_of_which_the_kernel_gives_the_daemon_one(
    kernels: str, given: range, tmp_path: Path
) -> None:
    said = tmp_path / "range"
    said.write_text(kernels)
    ports = given_ports(said)
    assert set(ports) <= set(given)
    assert {given[0], given[-1] - 1} <= set(ports)
    with bound_stream() as stream:
        assert stream.getsockname()[1] in given_ports()


@as_root
def test_who_holds_too_many_descriptors_is_told_so(greeter: int, port: int) -> None:
    code = f"{ERRNO}\nimport resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (8, 8))\nkept = []\n"
    code += "for _ in range(8): told(lambda: kept.append(socket.socket()))"
    said = python(policy(greeter), port, code).split()
    assert (said[0], said[-1]) == ("done", "EMFILE")


@as_root
@pytest.mark.parametrize(
    ("make", "rules", "way"),
    [
        (socket.socket, command_rules(asks=True), "open: sockets that are bound to nothing"),
        (
            bound_stream,
            [rule for rule in command_rules(asks=True) if not isinstance(rule, OnlyOptions)],
            "open: option 15 of IP",
        ),
        (
            bound_stream,
            [rule for rule in command_rules(asks=True) if not isinstance(rule, OnlyOptions)],
            "open: option 42 of IP",
        ),
        (
            bound_stream,
            [rule for rule in command_rules(asks=True) if not isinstance(rule, OnlyOptions)],
            "open: sockets that are accepted, which lose their address",
        ),
    ],
    ids=["not-bound", "options", "groups", "time-to-live"],
)
def test_a_hole_is_found(greeter: int, port: int, make: Any, rules: Any, way: str) -> None:
    assert way in found(rules, make, port)


@as_root
@pytest.mark.parametrize(
    ("named", "way"),
    [
        (False, "open: sockets that lose their address"),
        (True, "open: sockets that are accepted, which lose their address"),
    ],
    ids=["chosen-by-the-kernel", "accepted"],
)
def test_a_port_that_would_be_lost_is_found(port: int, named: bool, way: str) -> None:
    def loosely_bound() -> socket.socket:
        if named:
            made = bound_stream()
            made.setsockopt(socket.IPPROTO_IP, 21, 1)  # IP_MINTTL
            return made
        made = socket.socket()
        made.bind(("127.0.0.1", 0))
        return made

    assert way in found(command_rules(asks=True), loosely_bound, port)


@as_root
def test_where_somebody_has_the_proxys_port_no_guard_is_claimed(
    greeter: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(host: ProcessHost) -> str | None:
        with socket.create_server(("127.0.0.1", 0)) as other:
            return (await guard.enforcer(host, UNSAID, PYTHON, policy(greeter), other.getsockname()[1])).by

    assert on_host(story) is None
    assert "the egress guard does not hold: " in caplog.text


@needs_python
def test_commands_of_the_daemons_own_user_are_not_called_guarded(greeter: int, port: int) -> None:
    async def story(host: ProcessHost) -> str | None:
        return (await guard.enforcer(host, UNSAID, PYTHON, policy(greeter), port)).by

    assert on_host(story, CommandUser()) is None


@needs_python
def test_when_the_daemon_gives_none_any_more_there_is_no_such_call(greeter: int, port: int) -> None:
    code = f"{ERRNO}\ntold(socket.socket)"

    async def story(host: ProcessHost) -> str:
        enforced = await guard.enforcer(host, UNSAID, PYTHON, policy(greeter), port)
        enforced.close()
        return text(await run(host, PYTHON, "-c", code))

    threads = threading.active_count()
    assert on_host(story, CommandUser()) == "ENOSYS\n"
    assert threading.active_count() == threads


def test_a_proxy_that_has_ended_by_itself_keeps_no_daemon_from_its_end(
    greeter: int, port: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(proxy: Proxy, listener: socket.socket) -> None:
        listener.close()
        raise OSError("no memory")

    monkeypatch.setattr(Proxy, "serve", broken)
    nobody_asks, asking = os.pipe()
    way_out = WayOut(policy(greeter), nobody_asks, port)
    while "egress-proxy" in {thread.name for thread in threading.enumerate()}:
        time.sleep(0.01)
    way_out.close()
    os.close(asking)
    assert "nothing leaves the sandbox any more" in caplog.text
