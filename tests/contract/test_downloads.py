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
EVERYWHERE = Allowed(archive_hosts=frozenset({"*", HOST}))


class Shop:
    """What the host says: per path a reply; None cuts the connection."""

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
    assert (found.size, found.commit, found.entries) == (len(content), None, None)
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
        ({"*"}, False),  # a host that was placed by hand is meant by its name alone
        ({"*.example.com"}, False),
        (set(), False),
        ({"example.com"}, False),
        ({"*.downloads.example.com"}, False),
        ({"*.ample.com"}, False),
    ],
)
def test_the_operator_says_which_hosts(host: Provider, allowed: set[str], may: bool) -> None:
    hosts = Allowed(archive_hosts=frozenset(allowed))
    if may:
        assert fetch(host, at(host), allowed=hosts) == ARCHIVE
        return
    refused(host, at(host), "the operator has not allowed archives", hosts)
    assert host.requests == []


@pytest.mark.req("NOD-155")
@pytest.mark.parametrize(
    ("allowed", "may"),
    [
        ({"*"}, True),
        ({"*.example.org"}, True),
        ({"files.example.org"}, True),
        ({"example.org", "*.files.example.org", "*.ample.org"}, False),
    ],
)
def test_a_star_stands_for_public_hosts(allowed: set[str], may: bool) -> None:
    hosts = Allowed(archive_hosts=frozenset(allowed))
    assert hosts.allows_archive("https://FILES.example.org:8443/a?b", {"placed.example.org"}) is may


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
        ("https://elsewhere.example.org/x", "the operator has not allowed archives"),
        ("file:///etc/passwd", "must be an https address"),
        ("https://[::1]/", "must be a public address"),
        ("//evil\nname/", "must be one https address"),
    ],
)
def test_a_host_that_sends_on_elsewhere_is_not_followed(
    host: Provider, shop: Shop, to: str, words: str
) -> None:
    shop.replies["/go"] = Told(302, headers={"Location": to.replace("\n", "%0a \t")})
    refused(host, at(host, "/go"), words, Allowed(archive_hosts=frozenset({HOST})))
    assert [each.path for each in host.requests] == ["/go"]


@pytest.mark.req("NOD-151", "FLD-04")
def test_what_a_host_says_instead(host: Provider, shop: Shop) -> None:
    refused(host, at(host, "/nothing"), "answers 404 for .*: there is nothing at this address")
    shop.replies["/login"] = Told(body=b"<html>", headers={"Content-Type": "Text/HTML; charset=utf-8"})
    refused(host, at(host, "/login"), "answers with a web page")
    shop.replies["/empty"] = Told()
    refused(host, at(host, "/empty"), "the answer is empty")
    shop.replies["/coded"] = Told(body=b"x", headers={"Content-Encoding": "gzip"})
    with pytest.raises(SourceUnavailable, match="is compressed"):
        fetch(host, at(host, "/coded"))
    shop.replies["/busy"] = Told(503, headers={"Retry-After": "7"})
    with pytest.raises(SourceUnavailable, match="answers 503") as busy:
        fetch(host, at(host, "/busy"))
    assert busy.value.retry_after == 7
    shop.replies["/cut"] = None
    with pytest.raises(SourceUnavailable, match="gives no answer"):
        fetch(host, at(host, "/cut"))


@pytest.mark.req("FLD-04")
@pytest.mark.parametrize(
    "headers", [{"Transfer-Encoding": "chunked"}, {"Content-Length": "10"}], ids=["chunks", "length"]
)
def test_an_answer_that_breaks_off_may_be_fetched_again(
    host: Provider, shop: Shop, headers: dict[str, str]
) -> None:
    shop.replies["/short"] = Told(body=b"x", headers=headers)
    with pytest.raises(SourceUnavailable, match="broke off"):
        fetch(host, at(host, "/short"))


@pytest.mark.req("FLD-15")
def test_an_archive_has_a_largest_size(host: Provider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(downloads, "MOST_PACKED", len(ARCHIVE))
    assert fetch(host, at(host)) == ARCHIVE
    for most in (len(ARCHIVE) - 1, len(ARCHIVE) // 2):
        monkeypatch.setattr(downloads, "MOST_PACKED", most)
        refused(host, at(host), f"has more than {most} bytes")
