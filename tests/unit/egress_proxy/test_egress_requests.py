"""What the proxy takes, what it refuses, and what of it reaches the host."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from egress_proxy.proxy import Patience

from tests.unit.egress_proxy.bench import Bench, Host, client_hello, host_of, play

pytestmark = pytest.mark.req("NOD-458", "NOD-460")

PUBLIC = "203.0.113.9"
NAMES = {
    "example.com": [PUBLIC],
    "mixed.example.com": [PUBLIC, "10.0.0.1"],
    "inside.example.com": ["192.168.0.1"],
    "mapped.example.com": ["::ffff:127.0.0.1"],
    "empty.example.com": [],
    "localhost": ["127.0.0.1"],
}

HOSTILE = {
    "metadata": (b"GET http://169.254.169.254/latest/meta-data/ HTTP/1.1\r\n\r\n", 403),
    "task metadata": (b"CONNECT 169.254.170.2:80 HTTP/1.1\r\n\r\n", 403),
    "private": (b"CONNECT 10.1.2.3:443 HTTP/1.1\r\n\r\n", 403),
    "loopback": (b"GET http://127.0.0.1/ HTTP/1.1\r\n\r\n", 403),
    "loopback by name": (b"GET http://localhost/ HTTP/1.1\r\n\r\n", 403),
    "decimal": (b"GET http://2852039166/ HTTP/1.1\r\n\r\n", 400),
    "hex": (b"CONNECT 0xa9fea9fe:80 HTTP/1.1\r\n\r\n", 400),
    "short": (b"CONNECT 127.1:80 HTTP/1.1\r\n\r\n", 400),
    "octal": (b"CONNECT 0177.0.0.1:80 HTTP/1.1\r\n\r\n", 400),
    "mapped": (b"CONNECT [::ffff:169.254.169.254]:80 HTTP/1.1\r\n\r\n", 403),
    "mapped by name": (b"CONNECT mapped.example.com:443 HTTP/1.1\r\n\r\n", 403),
    "nat64": (b"CONNECT [64:ff9b::a9fe:a9fe]:80 HTTP/1.1\r\n\r\n", 403),
    "zone": (b"CONNECT [fe80::1%25eth0]:80 HTTP/1.1\r\n\r\n", 400),
    "inside by name": (b"CONNECT inside.example.com:443 HTTP/1.1\r\n\r\n", 403),
    "one bad address": (b"CONNECT mixed.example.com:443 HTTP/1.1\r\n\r\n", 403),
    "no address": (b"CONNECT empty.example.com:443 HTTP/1.1\r\n\r\n", 502),
    "no name": (b"CONNECT gone.example.com:443 HTTP/1.1\r\n\r\n", 502),
    "port": (b"CONNECT example.com:22 HTTP/1.1\r\n\r\n", 403),
    "no port": (b"CONNECT example.com HTTP/1.1\r\n\r\n", 400),
    "port 0": (b"CONNECT example.com:0 HTTP/1.1\r\n\r\n", 400),
    "user": (b"GET http://example.com@169.254.169.254/ HTTP/1.1\r\n\r\n", 400),
    "user with a name": (b"GET http://example.com:80@localhost/ HTTP/1.1\r\n\r\n", 400),
    "backslash": (b"GET http://example.com\\@localhost/ HTTP/1.1\r\n\r\n", 400),
    "origin form": (b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n", 400),
    "https in absolute form": (b"GET https://example.com/ HTTP/1.1\r\n\r\n", 400),
    "another scheme": (b"GET ftp://example.com/ HTTP/1.1\r\n\r\n", 400),
    "no version": (b"GET http://example.com/\r\n\r\n", 400),
    "http/2": (b"PRI * HTTP/2.0\r\n\r\n", 400),
    "two lengths": (
        b"POST http://example.com/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        400,
    ),
    "list of lengths": (b"POST http://example.com/ HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\na", 400),
    "signed length": (b"POST http://example.com/ HTTP/1.1\r\nContent-Length: +1\r\n\r\na", 400),
    "length and chunks": (
        b"POST http://example.com/ HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
    ),
    "odd coding": (b"POST http://example.com/ HTTP/1.1\r\nTransfer-Encoding: xchunked\r\n\r\n", 400),
    "folded header": (b"GET http://example.com/ HTTP/1.1\r\nA: b\r\n c\r\n\r\n", 400),
    "bare line feed": (b"GET http://example.com/ HTTP/1.1\r\nA: b\nHost: x\r\n\r\n", 400),
    "space before colon": (b"GET http://example.com/ HTTP/1.1\r\nContent-Length : 5\r\n\r\n", 400),
    "nul": (b"GET http://example.com/\x00 HTTP/1.1\r\n\r\n", 400),
    "tls without a tunnel": (client_hello("example.com") + b"\r\n\r\n", 400),
    "unfinished": (b"GET http://example.com/ HTTP/1.1\r\n", 400),
    "large head": (b"GET http://example.com/ HTTP/1.1\r\nA: " + b"a" * 40_000 + b"\r\n\r\n", 431),
    "many headers": (b"GET http://example.com/ HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n", 431),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_requests_are_refused_even_where_the_internet_is_open(name: str) -> None:
    request, status = HOSTILE[name]

    async def scenario(bench: Bench) -> None:
        answer = await bench.say(request)
        assert answer.startswith(b"HTTP/1.1 %d " % status), answer
        assert (await bench.line())["outcome"] in ("refused", "failed")

    play(scenario, names=NAMES)


def trusted(host: Host, *places: str) -> list[str]:
    return [f"{place}=127.0.0.1:{host.port}" for place in places]


def with_host(scenario: Any, *places: str, host: Host | None = None, **settings: Any) -> None:
    """Play with a host to which these places lead."""

    async def run() -> Any:
        async with host_of(host or Host()) as served:
            await asyncio.to_thread(
                play, lambda bench: scenario(bench, served), trusted=trusted(served, *places), **settings
            )

    asyncio.run(run())


def test_a_request_reaches_its_host_with_a_host_header_of_its_url_and_no_other() -> None:
    async def scenario(bench: Bench, host: Host) -> None:
        answer = await bench.say(
            b"GET http://Files.TEST/a?b=c HTTP/1.1\r\nHost: other.test\r\nProxy-Connection: keep-alive\r\n"
            b"Connection: X-Mine, Content-Length\r\nX-Mine: 1\r\nProxy-Authorization: Basic c2VjcmV0\r\nUpgrade: x\r\n"
            b"Accept: */*\r\n\r\nGET http://second.test/ HTTP/1.1\r\n\r\n"
        )
        assert answer.endswith(b"\r\n\r\nok")
        assert host.heard == [
            b"GET /a?b=c HTTP/1.1\r\nHost: files.test\r\nAccept: */*\r\nConnection: close\r\n\r\n"
        ]
        line = await bench.line()
        assert (line["outcome"], line["host"], line["port"]) == ("forwarded", "files.test", 80)
        assert line["received"] == len(answer)

    with_host(scenario, "files.test:80", policy="AllowList", allow=["files.test"])


@pytest.mark.parametrize(
    ("sent", "arrives"),
    [
        (b"Content-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\n\r\n", b"abc"),
        (
            b"Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nT: 1\r\n\r\nGET / HTTP/1.1\r\n\r\n",
            b"3\r\nabc\r\n0\r\n\r\n",
        ),
    ],
)
def test_one_request_for_each_connection(sent: bytes, arrives: bytes) -> None:
    async def scenario(bench: Bench, host: Host) -> None:
        await bench.say(b"POST http://files.test/ HTTP/1.1\r\n" + sent)
        assert host.heard[0].partition(b"\r\n\r\n")[2] == arrives

    with_host(scenario, "files.test:80", host=Host(until=arrives))


@pytest.mark.parametrize("chunks", [b"zz\r\n", b"3\r\nabcd\r\n", b"-1\r\n", b"3\nabc\r\n"])
def test_broken_chunks_end_the_connection(chunks: bytes) -> None:
    async def scenario(bench: Bench, host: Host) -> None:
        await bench.say(
            b"POST http://files.test/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + b"x" * 5000
        )
        assert (await bench.line())["reason"] == "malformed"

    with_host(scenario, "files.test:80")


def test_an_allow_list_lets_out_what_it_names_and_nothing_else() -> None:
    async def scenario(bench: Bench, host: Host) -> None:
        assert b"200 OK" in await bench.say(b"GET http://files.test/ HTTP/1.1\r\n\r\n")
        refused = await bench.say(b"GET http://other.test/ HTTP/1.1\r\n\r\n")
        assert refused.startswith(b"HTTP/1.1 403 ")
        assert b"other.test:80 is closed: the egress policy AllowList names it not" in refused
        assert bench.resolver.asked == []  # what is not named is not even looked up
        assert bench.lines()[1]["reason"] == "policy"

    with_host(scenario, "files.test:80", "other.test:80", policy="AllowList", allow=["files.test"])


def test_a_name_that_changes_its_address_is_connected_to_the_one_that_was_judged() -> None:
    """Rebinding: the first answer is public, every later one is this machine. Nobody asks twice."""

    async def scenario(bench: Bench) -> None:
        answer = await bench.say(b"CONNECT rebind.example.com:443 HTTP/1.1\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 502 ")
        assert bench.resolver.asked == ["rebind.example.com"]
        assert (await bench.line())["reason"] == "connect"

    # 240/4 would be judged; this one is public and leads nowhere
    names = {"rebind.example.com": [["203.0.113.254"], ["127.0.0.1"]]}
    connected: list[tuple[str, int]] = []

    async def no_connection(loop: Any, sock: Any, address: tuple[str, int]) -> None:
        connected.append(address)
        raise OSError("unreachable")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("asyncio.selector_events.BaseSelectorEventLoop.sock_connect", no_connection)
        play(scenario_without_patch(scenario, patch), names=names)
    assert connected == [("203.0.113.254", 443)]


def scenario_without_patch(scenario: Any, patch: pytest.MonkeyPatch) -> Any:
    """The client's own connection is a real one."""
    import socket  # noqa: PLC0415

    async def run(bench: Bench) -> None:
        raw = await asyncio.to_thread(socket.create_connection, ("127.0.0.1", bench.port))

        async def say(request: bytes) -> bytes:
            reader, writer = await asyncio.open_connection(sock=raw)
            writer.write(request)
            answer = await reader.read()
            writer.close()
            return answer

        bench.say = say  # type: ignore[method-assign]
        await scenario(bench)

    return run


CONNECT = b"CONNECT files.test:443 HTTP/1.1\r\n\r\n"


def test_tls_to_the_name_of_the_tunnel_passes() -> None:
    hello = client_hello("files.test")

    async def scenario(bench: Bench, host: Host) -> None:
        answer = await bench.say(CONNECT, hello[:7], hello[7:])
        assert answer == b"HTTP/1.1 200 Connection established\r\n\r\nanswer"
        assert host.heard == [hello]
        line = await bench.line()
        assert (line["outcome"], line["sent"], line["received"]) == ("tunnelled", len(hello), 6)

    with_host(scenario, "files.test:443", host=Host(b"answer"), policy="AllowList", allow=["files.test"])


@pytest.mark.parametrize(
    "first",
    [
        client_hello("other.test"),
        client_hello(None),
        b"GET / HTTP/1.1\r\nHost: other.test\r\n\r\n",
        b"SSH-2.0-OpenSSH_9\r\n",
        b"\x16\x03\x01\x00\x05\x02\x00\x00\x01\x00",
        b"\x16\x03\x01\xff\xff" + b"\x01" * 100,
        b"",
    ],
)
def test_a_tunnel_of_an_allow_list_is_for_tls_to_its_name_only(first: bytes) -> None:
    async def scenario(bench: Bench, host: Host) -> None:
        answer = await bench.say(CONNECT, first)
        assert answer.removeprefix(b"HTTP/1.1 200 Connection established\r\n\r\n") == bytes.fromhex(
            "15030300020270"
        )
        assert (await bench.line())["reason"] == "sni"
        assert b"".join(host.heard) == b""

    with_host(scenario, "files.test:443", policy="AllowList", allow=["files.test"])


def test_a_port_that_is_named_may_speak_what_it_likes_but_not_tls_to_another() -> None:
    async def scenario(bench: Bench, host: Host) -> None:
        tunnel = b"CONNECT git.test:22 HTTP/1.1\r\n\r\n"
        assert (await bench.say(tunnel, b"SSH-2.0-x\r\n")).endswith(b"SSH-2.0-y\r\n")
        await bench.say(tunnel, client_hello("other.test"))
        assert host.heard[0] == b"SSH-2.0-x\r\n"
        assert bench.lines()[-1]["reason"] == "sni"

    with_host(scenario, "git.test:22", host=Host(b"SSH-2.0-y\r\n"), policy="AllowList", allow=["git.test:22"])


def test_where_all_is_open_a_tunnel_carries_anything() -> None:
    async def scenario(bench: Bench, host: Host) -> None:
        assert (await bench.say(CONNECT, b"hello")).endswith(b"answer")
        assert host.heard == [b"hello"]

    with_host(scenario, "files.test:443", host=Host(b"answer"))


def test_a_slow_client_is_not_waited_for() -> None:
    async def scenario(bench: Bench) -> None:
        answer = await bench.say(b"GET http://exam", end=False)
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert (await bench.line())["reason"] == "slow"

    play(scenario, patience=Patience(head_s=0.05, idle_s=5))


def test_a_tunnel_in_which_nothing_moves_is_ended() -> None:
    async def scenario(bench: Bench, host: Host) -> None:
        await bench.say(CONNECT, end=False)
        assert (await bench.line())["reason"] == "idle"

    with_host(scenario, "files.test:443", patience=Patience(head_s=5, idle_s=0.05))


def test_more_connections_than_are_taken_are_answered_so() -> None:
    async def scenario(bench: Bench) -> None:
        held = [await asyncio.open_connection("127.0.0.1", bench.port) for _ in range(2)]
        answer = b""
        while not answer.startswith(b"HTTP/1.1 503 "):  # the held ones may not have been taken yet
            answer = await bench.say(b"GET http://example.com/ HTTP/1.1\r\n\r\n")
        for _, writer in held:
            writer.close()

    play(scenario, most_connections=2, names={})


def test_a_client_that_says_nothing_leaves_no_line() -> None:
    async def scenario(bench: Bench) -> None:
        assert await bench.say() == b""
        assert bench.lines() == []

    play(scenario)


def test_the_log_holds_neither_paths_nor_headers() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.say(
            b"GET http://no.example.com/s3cret?k=s3cret HTTP/1.1\r\nAuthorization: s3cret\r\n\r\n"
        )
        assert "s3cret" not in str(await bench.line())

    play(scenario)
