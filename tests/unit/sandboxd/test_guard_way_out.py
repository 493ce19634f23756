"""Commands behind the egress guard: sockets that reach their loopback, and the proxy there, and nothing else."""

import asyncio
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from egress_proxy.policy import Policy
from egress_proxy.proxy import Proxy
from sandboxd import guard
from sandboxd.execcore.host import ProcessHost
from sandboxd.execcore.spec import CommandUser
from sandboxd.seccomp.install import install_asking
from sandboxd.seccomp.rules import OnlyOptions, Rule, build, command_rules
from sandboxd.seccomp.streams import MakeStream, StreamGiver, loopback_stream
from sandboxd.wayout import WayOut

from tests.integration.greeting_host import greeting_host
from tests.unit.sandboxd.guarded import PYTHON, UNSAID, as_root, needs_python, on_host, processor, run, text
from tests.unit.sandboxd.networks import OtherNetwork, listens_not, needs_networks, other_network

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
    except TimeoutError as error:
        print("silence" if error.errno is None else errno.errorcode[error.errno])
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


def behind(kept: Policy | None, port: int, story: Callable[[ProcessHost], Awaitable[Any]]) -> Any:
    """Tells a story behind a guard that holds."""

    async def told(host: ProcessHost) -> Any:
        enforced = await guard.enforcer(host, UNSAID, PYTHON, kept, port)
        try:
            assert enforced.by == "seccomp"
            return await story(host)
        finally:
            enforced.close()

    return on_host(told)


def found(rules: list[Rule], make: MakeStream) -> list[str]:
    """What the probe finds behind these rules, where commands are given these sockets."""

    async def story(host: ProcessHost) -> list[str]:
        questions = host.confine(lambda: install_asking(build(processor(), rules)))
        giver = StreamGiver(questions, make)
        try:
            return await guard.probe(host, PYTHON, streams=True)
        finally:
            giver.close()

    return on_host(story)


def python(kept: Policy | None, port: int, code: str) -> str:
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
@pytest.mark.parametrize("policed", [True, False], ids=["AllowList", "Deny"])
def test_a_program_that_knows_no_proxy_reaches_nothing(greeter: int, port: int, policed: bool) -> None:
    code = f"""{ERRNO}
for address in ("169.254.170.2", "169.254.169.254", "10.0.0.2", "1.1.1.1"):
    told(lambda: socket.create_connection((address, 80), timeout=0.2))
for family, kind in ((socket.AF_INET6, 1), (socket.AF_INET, 2), (socket.AF_INET, 3), (socket.AF_NETLINK, 3)):
    told(lambda: socket.socket(family, kind))
"""
    lines = python(policy(greeter) if policed else None, port, code).split()
    assert set(lines[:4]) == {"silence"}
    assert lines[4:] == ["EAFNOSUPPORT"] * 4


@as_root
def test_an_address_beyond_loopback_fails_in_seconds(greeter: int, port: int) -> None:
    """A program without a time-out of its own would wait for two minutes."""
    assert python(None, port, f"{ERRNO}\ntold(lambda: socket.create_connection(('192.0.2.7', 80)))") == (
        "ETIMEDOUT\n"
    )


UNTIE = """
import ctypes, struct
libc = ctypes.CDLL(None, use_errno=True)
def tied(stream):
    for option, value in ((25, b""), (25, b"eth0"), (62, struct.pack("i", 0)), (62, struct.pack("i", 2))):
        try:
            stream.setsockopt(1, option, value)
            print("untied")
        except OSError as error:
            assert errno.errorcode[error.errno] == "EPERM", error
    print(stream.getsockopt(1, 25, 16).rstrip(bytes(1)).decode())
listener = socket.create_server(("", 0))
address = ("127.0.0.1", listener.getsockname()[1])
near = socket.create_connection(address)
far, _ = listener.accept()
"""


@as_root
def test_a_socket_stays_tied_to_loopback_whatever_becomes_of_it(port: int) -> None:
    """Connected, accepted, disconnected, bound anew, or handed to another process."""
    code = f"""{ERRNO}{UNTIE}
for stream in (socket.socket(), near, far):
    tied(stream)
    libc.connect(stream.fileno(), bytes(16), 16)  # AF_UNSPEC: it is connected no more
    stream.bind(("0.0.0.0", 0))
    tied(stream)
here, there = socket.socketpair()
given = socket.socket()
socket.send_fds(here, [b"x"], [given.fileno()])
taken = socket.socket(fileno=socket.recv_fds(there, 1, 1)[1][0])
tied(taken)
told(lambda: taken.setsockopt(socket.IPPROTO_IP, 4, bytes((131, 7, 4, 127, 0, 0, 1, 0))))
told(lambda: taken.setsockopt(socket.IPPROTO_IP, 50, bytes((0, 0, 0, 2))))
"""
    said = python(None, port, code)
    assert said.split() == ["lo"] * 7 + ["EPERM"] * 2, said


@as_root
@needs_networks
def test_nothing_leaves_for_a_network_beside_it(port: int) -> None:
    code = f"""{ERRNO}{UNTIE}
libc.connect(far.fileno(), bytes(16), 16)  # AF_UNSPEC
for stream in (socket.socket(), far):
    stream.settimeout(0.3)
    told(lambda: stream.connect(("{OtherNetwork.THERE}", {port})))
stream = socket.socket()
stream.setblocking(False)
told(lambda: stream.sendto(b"x", socket.MSG_FASTOPEN, ("{OtherNetwork.THERE}", {port})))
"""
    with other_network() as other:
        before = other.heard()
        said = python(None, port, code).split()
        assert other.heard() == before
        with pytest.raises(ConnectionRefusedError):  # whoever is not behind the guard gets there
            socket.create_connection((other.THERE, port), timeout=5)
        assert other.heard() > before
    assert said == ["silence", "silence", "EINPROGRESS"]


@as_root
@needs_networks
def test_nobody_beside_it_reaches_a_server_of_a_command(port: int) -> None:
    code = f"""{ERRNO}
import subprocess
server = socket.create_server(("0.0.0.0", {port}))
server.settimeout(3)
print("serving", flush=True)
told(server.accept)
"""
    with other_network() as other, socket.create_server(("0.0.0.0", 0)) as plain:
        assert other.calls(plain.getsockname()[1]) == "connected"

        async def story(host: ProcessHost) -> tuple[str, str]:
            await guard.enforcer(host, UNSAID, PYTHON)
            served = asyncio.create_task(run(host, PYTHON, "-c", code))
            while await asyncio.to_thread(listens_not, port):
                await asyncio.sleep(0.02)
            return await asyncio.to_thread(other.calls, port), text(await served)

        assert on_host(story) == ("ConnectionRefusedError", "serving\nsilence\n")


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
        "s = socket.create_server(('', 0)); c = socket.create_connection(s.getsockname()); s.accept()[0].send(b'x'); "
        "assert c.recv(1) == b'x'",
    ],
    ids=["unix", "flags", "non-blocking", "options", "servers"],
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


@as_root
def test_a_given_socket_is_the_commands_own(port: int) -> None:
    """And so shares no port of the daemon's user, whatever both have asked for."""
    code = f"""{ERRNO}
import os
stream = socket.socket()
print(os.fstat(stream.fileno()).st_uid == os.geteuid())
stream.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
told(lambda: stream.bind(("127.0.0.1", {port})))
"""
    with socket.create_server(("127.0.0.1", port), reuse_port=True):
        assert python(None, 0, code).split() == ["True", "EADDRINUSE"]


@as_root
def test_a_signal_meanwhile_leaves_no_socket_that_nobody_knows_of(port: int) -> None:
    code = """
import os, signal, socket
signal.signal(signal.SIGALRM, lambda *_: None)
signal.siginterrupt(signal.SIGALRM, False)
signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
before = len(os.listdir("/proc/self/fd"))
for _ in range(5000):
    try:
        socket.socket().close()
    except InterruptedError:
        pass
signal.setitimer(signal.ITIMER_REAL, 0)
print(len(os.listdir("/proc/self/fd")) - before)
"""
    assert python(None, port, code) == "0\n"


@as_root
def test_who_gives_them_survives_a_fault_of_its_own() -> None:
    faults = [MemoryError("once")]

    def make() -> socket.socket:
        if faults:
            raise faults.pop()
        return loopback_stream()

    async def story(host: ProcessHost) -> str:
        questions = host.confine(lambda: install_asking(build(processor(), command_rules())))
        giver = StreamGiver(questions, make)
        try:
            return text(await run(host, PYTHON, "-c", f"{ERRNO}\ntold(socket.socket)\ntold(socket.socket)"))
        finally:
            giver.close()

    assert on_host(story).split() == ["ENOBUFS", "done"]


@as_root
def test_who_holds_too_many_descriptors_is_told_so(greeter: int, port: int) -> None:
    code = f"{ERRNO}\nimport resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (8, 8))\nkept = []\n"
    code += "for _ in range(8): told(lambda: kept.append(socket.socket()))"
    said = python(policy(greeter), port, code).split()
    assert (said[0], said[-1]) == ("done", "EMFILE")


WITHOUT_OPTIONS = [rule for rule in command_rules() if not isinstance(rule, OnlyOptions)]


@as_root
@pytest.mark.parametrize(
    ("make", "rules", "way"),
    [
        (socket.socket, command_rules(), "open: sockets that are new and not tied to loopback"),
        (socket.socket, command_rules(), "open: sockets that are accepted and not tied to loopback"),
        (loopback_stream, WITHOUT_OPTIONS, "open: option 15 of IP"),
        (loopback_stream, WITHOUT_OPTIONS, "open: option 42 of IP"),
    ],
    ids=["not-tied", "accepted", "options", "groups"],
)
def test_a_hole_is_found(make: Any, rules: Any, way: str) -> None:
    assert way in found(rules, make)


@as_root
def test_where_sockets_cannot_be_given_deny_needs_none(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> socket.socket:
        raise PermissionError(1, "an old kernel")

    monkeypatch.setattr(guard, "StreamGiver", lambda questions, make: StreamGiver(questions, refused))
    code = f"{ERRNO}\ntold(socket.socket)"
    assert python(None, port, code) == "EAFNOSUPPORT\n"


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
    way_out = WayOut(policy(greeter), port)
    while "egress-proxy" in {thread.name for thread in threading.enumerate()}:
        time.sleep(0.01)
    way_out.close()
    assert "nothing leaves the sandbox any more" in caplog.text
