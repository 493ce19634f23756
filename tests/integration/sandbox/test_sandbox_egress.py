"""The way out of a sandbox, in each mode: its own proxy, to what the policy names, and nothing beside it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Iterator

import pytest

from tests.integration.greeting_host import greeting_host
from tests.integration.sandbox.bench import Driver, Guest, alive
from tests.integration.sandbox.test_sandbox_with_sandboxd import play, real_driver
from tests.unit.sandboxd.link_server import LinkServer

__all__ = ["real_driver"]

GET = (
    "import urllib.request as r, urllib.error as e\ntry: print(r.urlopen('{}', timeout=10).read().decode())\n"
)
GET += "except e.HTTPError as error: print(error.code, error.read().decode())"
DIRECT = "import socket\nsocket.create_connection(('{}', {}), timeout=5)\nprint('connected')"


@pytest.fixture(scope="module")
def host() -> Iterator[int]:
    """A host of the machine's, outside of every sandbox: its port."""

    with greeting_host() as port:
        yield port


def trusted(host: int) -> list[str]:
    return [f"{name}.test:80=127.0.0.1:{host}" for name in ("files", "other")]


async def python(link: LinkServer, name: str, source: str) -> str:
    result = await link.run(name, "exec", {"command": f'python3 -c "{source}" 2>&1'})
    return result["output"]


@pytest.mark.req("NOD-458", "NOD-459", "NOD-460")
def test_an_allow_list_leads_to_its_hosts_and_nowhere_else(real_driver: Driver, host: int) -> None:
    async def scenario(link: LinkServer, guest: Guest) -> None:
        assert link.hello is not None
        assert link.hello["isolation"]["guard"] == "network"
        shown = await link.run("env", "exec", {"command": "env"})
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
            assert f"{name}=http://127.0.0.1:3128\n" in shown["output"]
        assert "NODUS_" not in shown["output"]
        assert await python(link, "allowed", GET.format("http://files.test/")) == "hello from files.test\n"
        refused = await python(link, "unlisted", GET.format("http://other.test/"))
        assert refused.startswith("403 nodus egress: other.test:80 is closed: the egress policy AllowList"), (
            refused
        )
        for number, place in enumerate(
            ("169.254.169.254", "169.254.170.2", "10.0.0.1", f"127.0.0.1.:{host}")
        ):
            said = await python(link, f"private-{number}", GET.format(f"http://{place}/"))
            assert "hello" not in said, said
        for number, place in enumerate((("127.0.0.1", host), ("files.test", 80), ("203.0.113.80", 443))):
            said = await python(link, f"direct-{number}", DIRECT.format(*place))
            assert "connected" not in said, said
            assert "Error" in said or "error" in said, said

    play(
        real_driver,
        scenario,
        trusted=trusted(host),
        NODUS_EGRESS="AllowList",
        NODUS_EGRESS_ALLOW="files.test",
    )


@pytest.mark.req("NOD-460")
def test_open_keeps_private_addresses_and_the_machine_closed(real_driver: Driver, host: int) -> None:
    async def scenario(link: LinkServer, guest: Guest) -> None:
        assert await python(link, "allowed", GET.format("http://other.test/")) == "hello from other.test\n"
        places = (
            "169.254.169.254",
            "169.254.170.2",
            "10.0.0.1",
            "192.168.0.1",
            "localhost.",
            "[::1]",
            "0.0.0.0",
        )
        for number, place in enumerate(places):
            said = await python(link, f"private-{number}", GET.format(f"http://{place}/"))
            assert said.startswith("403 nodus egress: an address of "), (place, said)
        said = await python(link, "direct", DIRECT.format("203.0.113.80", 443))
        assert "connected" not in said, said

    play(real_driver, scenario, trusted=trusted(host), NODUS_EGRESS="Open")


@pytest.mark.req("NOD-457")
def test_deny_has_no_proxy(real_driver: Driver, host: int) -> None:
    async def scenario(link: LinkServer, guest: Guest) -> None:
        assert guest.proxy is None
        shown = await link.run("env", "exec", {"command": "env"})
        assert "PROXY" not in shown["output"].upper()
        assert "connected" not in await python(link, "port", DIRECT.format("127.0.0.1", 3128))

    play(real_driver, scenario, trusted=trusted(host))


def test_a_proxy_that_died_is_there_again_and_ends_with_its_sandbox(real_driver: Driver, host: int) -> None:
    proxies: list[int] = []

    async def scenario(link: LinkServer, guest: Guest) -> None:
        assert guest.proxy is not None
        os.kill(guest.proxy, signal.SIGKILL)
        async with asyncio.timeout(30):
            while True:
                now = (await asyncio.to_thread(real_driver.ask, "poll", id=guest.sandbox_id))["proxy"]
                if now not in (None, guest.proxy):
                    break
                await asyncio.sleep(0.05)
        proxies.extend((guest.proxy, now))
        assert await python(link, "again", GET.format("http://files.test/")) == "hello from files.test\n"

    play(real_driver, scenario, trusted=trusted(host), NODUS_EGRESS="Open")
    assert not any(alive(pid) for pid in proxies)


def test_each_connection_leaves_a_line_with_its_sandbox(real_driver: Driver, host: int) -> None:
    async def scenario(link: LinkServer, guest: Guest) -> str:
        await python(link, "get", GET.format("http://files.test/with?secret=1"))
        return guest.sandbox_id

    sandbox = play(real_driver, scenario, trusted=trusted(host), NODUS_EGRESS="Open")
    lines = (real_driver.folder / "state" / "egress.log").read_text().splitlines()
    (line,) = [each for each in map(json.loads, lines) if each["sandbox"] == sandbox]
    assert (line["host"], line["port"], line["outcome"]) == ("files.test", 80, "forwarded")
    assert line["received"] > len("hello from files.test")
    assert "secret" not in json.dumps(line)
