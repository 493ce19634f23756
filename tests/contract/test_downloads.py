"""Archives at addresses, from a host under TLS: what is fetched, where hosts may send on to, and what is refused."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from nodus_core.conversations.sources import Allowed, SourceRefused, SourceUnavailable
from nodus_core.providers import downloads
from nodus_core.providers.downloads import MOST_REDIRECTS, AllowedDownloads
from tls_providers import Provider, Request, Told, tls_provider

HOST = "downloads.example.com"
ARCHIVE = bytes(range(256)) * 4000
DIGEST = hashlib.sha256(ARCHIVE).hexdigest()
EVERYWHERE = Allowed(archives=frozenset("*"))


class Shop:
    """What the host says: per path a reply, or a list of replies, the last for ever."""

    def __init__(self) -> None:
        self.replies: dict[str, Told | None] = {"/site.tgz": Told(body=ARCHIVE)}

    def __call__(self, request: Request) -> Told | None:
        return self.replies.get(request.path, Told(404))


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
def host(tmp_path: Path, shop: Shop) -> Iterator[Provider]:
    with tls_provider(tmp_path, shop, HOST) as running:
        yield running


def at(host: Provider, path: str = "/site.tgz", name: str = HOST) -> str:
    return f"https://{name}:{host.port}{path}"


def fetch(host: Provider, url: str, sha256: str | None = None, allowed: Allowed = EVERYWHERE) -> bytes:
    byok = {"privateHosts": {HOST: "127.0.0.1"}, "certificates": host.certificates}
    reader = AllowedDownloads(allowed, lambda: json.dumps({"byok": byok}))
    with reader.snapshot(url, sha256) as found:
        content = found.archive.read()
    assert (found.version, found.size) == (hashlib.sha256(content).hexdigest(), len(content))
    assert found.entries is None
    return content


def refused(host: Provider, url: str, words: str, allowed: Allowed = EVERYWHERE) -> None:
    with pytest.raises(SourceRefused, match=words):
        fetch(host, url, allowed=allowed)


@pytest.mark.req("NOD-154", "NOD-155")
def test_an_archive_is_what_stands_at_its_address(host: Provider, shop: Shop) -> None:
    assert fetch(host, at(host)) == ARCHIVE
    assert fetch(host, at(host), DIGEST) == ARCHIVE
    shop.replies["/api?ref=main&format=zip"] = Told(body=b"PK")
    assert fetch(host, at(host, "/api?ref=main&format=zip")) == b"PK"
    sent = host.requests[0].headers
    assert "authorization" not in sent
    assert "cookie" not in sent


@pytest.mark.req("NOD-153")
def test_another_archive_than_the_one_that_is_named_is_refused(host: Provider) -> None:
    with pytest.raises(SourceRefused, match=rf"has the SHA-256 {DIGEST}, not {'0' * 64}"):
        fetch(host, at(host), "0" * 64)


@pytest.mark.req("NOD-155", "FLD-13")
@pytest.mark.parametrize(
    ("allowed", "may"),
    [
        ({HOST}, True),
        ({"*.example.com"}, True),
        ({"*"}, True),
        (set(), False),
        ({"example.com"}, False),
        ({"*.downloads.example.com"}, False),
        ({"*.ample.com"}, False),
    ],
)
def test_the_operator_says_which_hosts(host: Provider, allowed: set[str], may: bool) -> None:
    hosts = Allowed(archives=frozenset(allowed))
    if may:
        assert fetch(host, at(host), allowed=hosts) == ARCHIVE
        return
    refused(host, at(host), "a host that the operator has not allowed", hosts)
    assert host.requests == []


@pytest.mark.req("NOD-154", "FLD-13")
def test_a_host_may_send_on_to_another_address_that_is_allowed(host: Provider, shop: Shop) -> None:
    shop.replies["/latest"] = Told(302, headers={"Location": "/v/1"})
    shop.replies["/v/1"] = Told(307, headers={"Location": at(host)})
    assert fetch(host, at(host, "/latest")) == ARCHIVE
    shop.replies["/round"] = Told(302, headers={"Location": "/round"})
    refused(host, at(host, "/round"), "sends on more than 5 times")
    assert len([each for each in host.requests if each.path == "/round"]) == MOST_REDIRECTS + 1


@pytest.mark.req("FLD-13")
@pytest.mark.parametrize(
    ("to", "words"),
    [
        ("http://downloads.example.com/site.tgz", "must be an https address"),
        ("https://169.254.169.254/latest/meta-data", "must be a public address"),
        ("https://localhost/x", "must be a public host name"),
        ("https://me:word@downloads.example.com/x", "must not hold a user name"),
        ("https://elsewhere.example.org/x", "a host that the operator has not allowed"),
        ("file:///etc/passwd", "must be an https address"),
        ("https://[::1]/", "must be a public address"),
        ("//evil\nname/", "must be one https address"),
    ],
)
def test_a_host_that_sends_on_elsewhere_is_not_followed(
    host: Provider, shop: Shop, to: str, words: str
) -> None:
    shop.replies["/go"] = Told(302, headers={"Location": to.replace("\n", "%0a \t")})
    refused(host, at(host, "/go"), words, Allowed(archives=frozenset({HOST})))
    assert [each.path for each in host.requests] == ["/go"]


@pytest.mark.req("NOD-151", "FLD-04")
def test_what_a_host_says_instead(host: Provider, shop: Shop) -> None:
    refused(host, at(host, "/nothing"), "answers 404 for .*: there is nothing at this address")
    shop.replies["/login"] = Told(body=b"<html>", headers={"Content-Type": "text/html; charset=utf-8"})
    refused(host, at(host, "/login"), "answers with a web page")
    shop.replies["/coded"] = Told(body=b"x", headers={"Content-Encoding": "gzip"})
    refused(host, at(host, "/coded"), "cannot be read")
    shop.replies["/busy"] = Told(503, headers={"Retry-After": "7"})
    with pytest.raises(SourceUnavailable, match="answers 503") as busy:
        fetch(host, at(host, "/busy"))
    assert busy.value.retry_after == 7
    shop.replies["/cut"] = None
    with pytest.raises(SourceUnavailable, match="does not answer"):
        fetch(host, at(host, "/cut"))


@pytest.mark.req("FLD-04")
def test_an_answer_that_breaks_off_may_be_fetched_again(host: Provider, shop: Shop) -> None:
    shop.replies["/short"] = Told(body=b"x", headers={"Transfer-Encoding": "chunked"})
    with pytest.raises(SourceUnavailable, match=r"broke off|does not answer"):
        fetch(host, at(host, "/short"))


@pytest.mark.req("FLD-15")
def test_an_archive_has_a_largest_size(host: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "MOST_PACKED", len(ARCHIVE))
    assert fetch(host, at(host)) == ARCHIVE
    monkeypatch.setattr(downloads, "MOST_PACKED", len(ARCHIVE) - 1)
    refused(host, at(host), f"has more than {len(ARCHIVE) - 1} bytes")
