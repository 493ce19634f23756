"""The real daemon in each mode: it reaches its link through the dial service and runs commands apart from itself."""

from __future__ import annotations

import asyncio
import base64
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import pytest

from localstack.paths import ROOT
from tests.integration.sandbox.bench import Driver, Guest
from tests.integration.sandbox.conftest import MODES, start_driver
from tests.unit.sandboxd.link_server import ENROL_CODE, SANDBOX, LinkServer

pytestmark = pytest.mark.req("NOD-042")

Scenario = Callable[[LinkServer, Guest], Awaitable[Any]]


@pytest.fixture(scope="module", params=MODES)
def real_driver(request: pytest.FixtureRequest) -> Iterator[Driver]:
    started = start_driver(request.param, ROOT / "sandbox_images" / "sandboxd")
    try:
        if started.uid is not None and version(started.python()) != version(sys.executable):
            pytest.skip("aiohttp of this environment is for another Python than the ordinary user's")
        yield started
    finally:
        started.discard()


def version(python: str) -> str:
    code = "import sys; print(sys.version_info[:2])"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout


def play(
    driver: Driver,
    scenario: Scenario,
    *,
    own_guard: bool = False,
    trusted: Sequence[str] = (),
    **more: str,
) -> Any:
    """Start a link and a sandbox with the real daemon, and play the scenario.

    Args:
        own_guard: as on Fargate, the daemon has to keep the egress policy itself.
        trusted: where the operator leads hosts.
        more: further variables of the task.
    """

    async def run() -> Any:
        async with LinkServer() as link, asyncio.timeout(50):
            variables = {**link.environ, "NODUS_ENROL_CODE": ENROL_CODE, "NODUS_SANDBOX_ID": SANDBOX, **more}
            guest = await asyncio.to_thread(
                driver.start,
                allowed=[("127.0.0.1", link.port)],
                variables=variables,
                own_guard=own_guard,
                trusted=trusted,
            )
            try:
                await link.until(lambda: link.hello is not None)
                return await scenario(link, guest)
            finally:
                await asyncio.to_thread(driver.ask, "close", id=guest.sandbox_id)

    return asyncio.run(run())


@pytest.mark.req("NOD-453")
def test_it_says_hello_and_runs_commands(real_driver: Driver) -> None:
    async def scenario(link: LinkServer, guest: Guest) -> None:
        assert link.hello is not None
        assert link.hello["isolation"]["isolated"] is True
        assert link.hello["isolation"]["guard"] == "network"
        assert "processes" in link.hello["limits"]["enforced"]
        result = await link.run("c1", "exec", {"command": "python3 --version; id -un; pwd; echo $HOME"})
        assert (result["exitCode"], result["state"]) == (0, "exited"), result
        version_line, user, place, home = result["output"].split("\n")[:4]
        assert version_line.startswith("Python 3")
        assert (user, place, home) == ("agent", "/workspace", "/home/agent")
        written = await link.run(
            "c2", "write_file", {"path": "/workspace/a.txt", "content": "x", "mode": 420, "createDirs": True}
        )
        assert written["state"] == "exited", written
        result = await link.run(
            "c3", "exec", {"command": "cat /workspace/a.txt && echo y >> /workspace/a.txt"}
        )
        assert result["output"].startswith("x"), result

    play(real_driver, scenario)


@pytest.mark.req("NOD-423")
def test_commands_cannot_read_its_secrets_or_end_it(real_driver: Driver) -> None:
    async def scenario(link: LinkServer, guest: Guest) -> None:
        peek = "env; cat /proc/1/environ; ls /proc/1/fd; grep -ral enrol-onc[e] /proc/1/environ /workspace /tmp /home"
        result = await link.run("c1", "exec", {"command": peek})
        assert ENROL_CODE not in result["output"]
        assert "NODUS_" not in result["output"]
        for n, signal in enumerate(("TERM", "INT", "HUP", "QUIT", "KILL", "USR1", "USR2", "ALRM")):
            await link.run(f"k{n}", "exec", {"command": f"kill -{signal} 1; kill -{signal} -- -1; true"})
        result = await link.run("c2", "exec", {"command": "echo still here"})
        assert result["output"] == "still here\n"
        assert link.calls.count("hello") == 1

    play(real_driver, scenario)


@pytest.mark.req("FLD-09")
def test_a_cancelled_command_ends_with_all_it_started(real_driver: Driver) -> None:
    tree = "(sleep 40; echo late > late.txt) & setsid sleep 41 & nohup sleep 42 & sleep 43"

    async def scenario(link: LinkServer, guest: Guest) -> None:
        result = await link.run("c1", "exec", {"command": f"sh -c '{tree}'", "timeoutS": 1, "graceS": 1})
        assert result["reason"] == "timeout", result
        left = await link.run("c2", "exec", {"command": "pgrep -c sleep; ls"})
        assert left["output"].split() == ["0"]

    play(real_driver, scenario)


@pytest.mark.req("NOD-044")
def test_it_ends_itself_when_it_is_asked_to(real_driver: Driver) -> None:
    async def scenario(link: LinkServer, guest: Guest) -> None:
        await link.submit("c1", "exec", {"command": "sleep 600"})
        await link.until(lambda: link.rows["c1"]["state"] != "pending")
        await asyncio.to_thread(real_driver.ask, "ask_to_end", id=guest.sandbox_id)
        async with asyncio.timeout(30):
            while (await asyncio.to_thread(real_driver.ask, "poll", id=guest.sandbox_id))["code"] is None:
                await asyncio.sleep(0.02)

    play(real_driver, scenario)


SERVE = (
    'python3 -c \'import socket as s; a = s.create_server(("", 0)); b = s.create_connection(("127.0.0.1", '
    "a.getsockname()[1])); a.accept()'"
)
CLOSED = {
    "datagrams": "python3 -c 'from socket import *; socket(type=SOCK_DGRAM); print(\"open\")'",
    "inet6": "python3 -c 'from socket import *; socket(AF_INET6); print(\"open\")'",
    "urllib": 'python3 -c \'import urllib.request as r; r.urlopen("http://1.1.1.1", timeout=1); print("open")\'',
    "bash": "timeout 1 bash -c 'exec 3<>/dev/tcp/1.1.1.1/80' && echo open",
    "io_uring": "python3 -c 'import ctypes; c = ctypes.CDLL(None); "
    'print("open" if c.syscall(425, 1, ctypes.create_string_buffer(512)) >= 0 else 1/0)\'',
    "setuid": "su -c 'echo open' || exit 1",
}
WORKING = {
    "git": "cd $(mktemp -d) && git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x",
    "python": "python3 -c 'import ssl, sqlite3; print(1)'",
    "pip": "python3 -m pip --version || python3 -c 'import pip' 2>&1 | grep -q ModuleNotFound",
    "loopback": SERVE,
    "pipes": "set -o pipefail; seq 1000 | sort -n | tail -1 | grep -q 1000",
    "multiprocessing": "python3 -c 'import multiprocessing as m; assert m.Pool(2).map(abs, [-1]) == [1]'",
    "unix-socket": 'python3 -c \'import socket as s; a = s.socket(s.AF_UNIX); a.bind("\\0x"); a.listen(); '
    's.socket(s.AF_UNIX).connect("\\0x")\'',
    "ps": "ps aux | grep -q python3",
}


@pytest.mark.req("NOD-457")
def test_its_own_guard_closes_every_network_and_leaves_the_rest(real_driver: Driver) -> None:
    async def scenario(link: LinkServer, guest: Guest) -> None:
        assert link.hello is not None
        if (
            real_driver.mode != "root"
        ):  # commands are the daemon's own user: what they could do to it is no proof
            assert link.hello["isolation"]["guard"] is None
            return
        assert link.hello["isolation"]["guard"] == "seccomp"
        for name, command in CLOSED.items():
            result = await link.run(f"closed-{name}", "exec", {"command": command})
            assert result["exitCode"] != 0, (name, result)
            assert "open" not in result["output"].splitlines(), (name, result)
        for name, command in WORKING.items():
            result = await link.run(f"works-{name}", "exec", {"command": command})
            assert result["exitCode"] == 0, (name, result)
        wrote = await link.run("w", "write_file", {"path": "a.txt", "content": "x"})
        assert wrote["state"] == "exited", wrote

    play(real_driver, scenario, own_guard=True)


VISIT = {"port": 8000, "method": "GET", "headers": ["Host", "127.0.0.1:8000", "Connection", "close"]}


@pytest.mark.req("NOD-417")
@pytest.mark.parametrize("own_guard", [False, True], ids=["namespace", "guard"])
def test_a_service_of_a_command_is_asked_as_a_command_would_ask_it(
    real_driver: Driver, own_guard: bool
) -> None:
    async def scenario(link: LinkServer, guest: Guest) -> None:
        assert link.hello is not None
        if link.hello["isolation"]["guard"] is None:  # no command is run then
            return
        nothing = await link.ask(1, "http", {**VISIT, "target": "/"})
        assert (nothing["state"], nothing["reason"]) == ("failed", "unreachable")
        serve = "echo '<h1>hello</h1>' > page.html; nohup python3 -m http.server 8000 --bind 127.0.0.1 > log 2>&1 &"
        waits = "until (exec 3<>/dev/tcp/127.0.0.1/8000) 2>/dev/null; do sleep 0.1; done"
        started = await link.run("c1", "exec", {"command": f"{serve} {waits}"})
        assert started["exitCode"] == 0, started
        page = await link.ask(2, "http", {**VISIT, "target": "/page.html"})
        assert (page["state"], page["status"]) == ("exited", 200), page
        assert base64.b64decode(page["content"]) == b"<h1>hello</h1>\n"
        missing = await link.ask(3, "http", {**VISIT, "target": "/none"})
        assert missing["status"] == 404

    play(real_driver, scenario, own_guard=own_guard)
