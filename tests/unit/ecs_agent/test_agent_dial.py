"""The dial service judges what it is asked."""

from __future__ import annotations

import socket

import pytest

from localstack.ecs_agent.dial import DialError, DialService, link_addresses, parse


def ask(channel: socket.socket, request: bytes) -> tuple[bytes, list[int]]:
    channel.sendall(request)
    answer, descriptors, _, _ = socket.recv_fds(channel, 512, 4)
    return answer, descriptors


def test_addresses_of_the_link() -> None:
    urls = ["http://127.0.0.1:4566/link/v1", "wss://Link.Example/bell", "https://[::1]:8443/x"]
    assert link_addresses(urls) == {("127.0.0.1", 4566), ("link.example", 443), ("::1", 8443)}


@pytest.mark.parametrize("url", ["file:///etc/passwd", "127.0.0.1:80", "http:///x", ""])
def test_what_is_no_address_of_a_link_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="is not an address of a link"):
        link_addresses([url])


@pytest.mark.parametrize(
    "request_bytes",
    [b"host", b":80", b"host:", b"host:0", b"host:65536", b"host:-1", b"host:8\xc2\xb2", b"\xff:80"],
)
def test_nonsense_is_refused(request_bytes: bytes) -> None:
    with pytest.raises(DialError):
        parse(request_bytes)


def test_forms_of_one_address() -> None:
    assert parse(b"[::1]:80") == ("::1", 80)
    assert parse(b"LocalHost:80") == ("localhost", 80)


def test_descriptors_that_are_sent_along_are_dropped() -> None:
    service = DialService(frozenset(), "x")
    channel = service.theirs.dup()
    service.start()
    with channel, socket.socket() as gift:
        socket.send_fds(channel, [b"1.2.3.4:80"], [gift.fileno()])
        answer, descriptors, _, _ = socket.recv_fds(channel, 512, 4)
        assert answer == b"error: 1.2.3.4:80 is not the link's address"
        assert descriptors == []
        assert ask(channel, b"x")[0] == b"error: expected HOST:PORT"
    service.close()


def test_a_connection_is_handed_over_and_nothing_else() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        service = DialService(frozenset({("127.0.0.1", port)}), "x")
        channel = service.theirs.dup()
        service.start()
        with channel:
            answer, descriptors = ask(channel, f"127.0.0.1:{port}".encode())
            assert answer == b"ok"
            with socket.socket(fileno=descriptors[0]) as mine, server.accept()[0] as theirs:
                mine.sendall(b"through")
                assert theirs.recv(10) == b"through"
            service.hang_up()
            assert channel.recv(10) == b""
        service.close()
