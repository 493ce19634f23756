"""Public registries: what a tag stands for, whatever the registry says (NOD-449, FLD-13)."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import httpx2
import pytest
from nodus_core.kernel.errors import RetryableError, TerminalError
from nodus_core.providers.posting import Answer, ConnectionFailure, NeverSendable
from nodus_core.providers.registries import LARGEST_MANIFEST, PublicRegistries, fetched
from nodus_core.sandboxes.references import BadReference, Reference, read_reference

MANIFEST = b'{"schemaVersion": 2}'
DIGEST = f"sha256:{hashlib.sha256(MANIFEST).hexdigest()}"
AUTH = 'Bearer realm="https://auth.example/token",service="registry.example",scope="repository:x:pull,push"'


class Web:
    """Answers by address; what is asked is kept."""

    def __init__(self, **more: Any) -> None:
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.manifest = Answer(200, {"docker-content-digest": DIGEST}, MANIFEST)
        self.token = Answer(200, {}, json.dumps({"token": "t0ken"}).encode())
        self.challenge: Mapping[str, str] = {"www-authenticate": AUTH}
        self.is_open = False
        vars(self).update(more)

    def get(self, address: str, headers: dict[str, str]) -> Answer:
        self.asked.append((address, headers))
        if address.startswith("https://auth.example/token?"):
            return self.token
        if self.is_open or headers.get("Authorization") == "Bearer t0ken":
            return self.manifest
        return Answer(401, self.challenge, b"")


def ask(web: Web, host: str = "registry.example", version: str = "1") -> str:
    return PublicRegistries(web.get).digest("team/tools", version, host)


@pytest.mark.req("NOD-448", "NOD-449")
def test_a_token_is_fetched_where_the_registry_says_and_the_digest_is_that_of_the_bytes() -> None:
    web = Web()
    assert ask(web) == DIGEST
    addresses = [address for address, _ in web.asked]
    manifest = "https://registry.example/v2/team/tools/manifests/1"
    token = "https://auth.example/token?service=registry.example&scope=repository%3Ateam%2Ftools%3Apull"
    assert addresses == [manifest, token, manifest]


def test_docker_hub_is_asked_where_it_answers() -> None:
    web = Web(is_open=True, manifest=Answer(200, {}, MANIFEST))
    assert ask(web, "docker.io") == DIGEST
    assert web.asked[0][0].startswith("https://registry-1.docker.io/v2/")


@pytest.mark.req("NOD-449")
@pytest.mark.parametrize(
    ("web", "said"),
    [
        (Web(is_open=True, manifest=Answer(404, {}, b"")), "has no image"),
        (Web(is_open=True, manifest=Answer(403, {}, b"")), "without credentials"),
        (Web(manifest=Answer(401, {}, b"")), "without credentials"),
        (Web(challenge={"www-authenticate": 'Basic realm="x"'}), "asks for credentials"),
        (Web(challenge={"www-authenticate": 'Bearer realm="http://10.0.0.1/token"'}), "asks for credentials"),
        (Web(challenge={}), "asks for credentials"),
        (Web(token=Answer(403, {}, b"{}")), "without credentials"),
        (Web(token=Answer(200, {}, b"[]")), "without credentials"),
        (Web(token=Answer(200, {}, b'{"token": "a\\nb"}')), "without credentials"),
        (Web(token=Answer(200, {}, b"<html>")), "without credentials"),
        (Web(token=Answer(200, {}, b"[" * 200_000)), "without credentials"),
        (Web(token=Answer(200, {}, '{"token": "schl\u00fcssel"}'.encode())), "without credentials"),
        (
            Web(is_open=True, manifest=Answer(302, {"location": "http://169.254.169.254/"}, b"")),
            "no manifest",
        ),
        (
            Web(
                is_open=True, manifest=Answer(200, {"docker-content-digest": f"sha256:{'0' * 64}"}, MANIFEST)
            ),
            "another manifest",
        ),
    ],
)
def test_what_cannot_be_pulled_says_why(web: Web, said: str) -> None:
    with pytest.raises(TerminalError, match=said):
        ask(web)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_registry_that_is_busy_is_asked_later(status: int) -> None:
    with pytest.raises(RetryableError):
        ask(Web(is_open=True, manifest=Answer(status, {}, b"")))


@pytest.mark.req("FLD-13")
def test_an_address_that_is_not_public_is_never_asked_and_a_silent_one_later() -> None:
    def forbidden(address: str, headers: dict[str, str]) -> Answer:
        raise ConnectionFailure(NeverSendable("private"), sent=False)

    def silent(address: str, headers: dict[str, str]) -> Answer:
        raise ConnectionFailure(OSError("gone"), sent=True)

    with pytest.raises(TerminalError, match="not public"):
        PublicRegistries(forbidden).digest("a/b", "1", "localtest.example")
    with pytest.raises(RetryableError, match="does not answer"):
        PublicRegistries(silent).digest("a/b", "1", "registry.example")


@pytest.mark.req("FLD-13")
@pytest.mark.parametrize("host", ["127.0.0.1:1", "169.254.169.254", "10.0.0.1:5000"])
def test_the_real_client_reaches_no_address_of_the_machine_or_its_network(host: str) -> None:
    with pytest.raises(TerminalError, match="not public"):
        PublicRegistries().digest("a/b", "1", host)


@pytest.mark.req("FLD-13")
def test_of_an_endless_answer_no_more_is_read_than_a_manifest_may_have() -> None:
    sent: list[int] = []

    def endless() -> Iterator[bytes]:
        for _ in range(1024):
            sent.append(64 * 1024)
            yield bytes(64 * 1024)

    transport = httpx2.MockTransport(lambda request: httpx2.Response(200, content=endless()))
    with pytest.raises(TerminalError, match="more than a manifest"):
        PublicRegistries(partial(fetched, transport=transport)).digest("a/b", "1", "registry.example")
    assert sum(sent) <= LARGEST_MANIFEST + 64 * 1024


@pytest.mark.parametrize("host", ["registry..example", "-", "a" * 300 + ".example", "registry.example:99999"])
def test_a_host_that_can_be_none_is_refused_in_words(host: str) -> None:
    with pytest.raises((TerminalError, RetryableError), match=r"cannot be asked|does not answer"):
        PublicRegistries().digest("a/b", "1", host)


@pytest.mark.req("NOD-449")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("python:3.12", Reference("docker.io", "library/python", "3.12")),
        ("library/python", Reference("docker.io", "library/python")),
        ("team/tools", Reference("docker.io", "team/tools")),
        (
            "public.ecr.aws/docker/library/python:3.12",
            Reference("public.ecr.aws", "docker/library/python", "3.12"),
        ),
        ("Registry.example:5000/a/b__c.d-e:v_1", Reference("registry.example:5000", "a/b__c.d-e", "v_1")),
        (f"ghcr.io/a/b@{DIGEST}", Reference("ghcr.io", "a/b", None, DIGEST)),
        (f"ghcr.io/a/b:1@{DIGEST}", Reference("ghcr.io", "a/b", "1", DIGEST)),
    ],
)
def test_references_are_read_as_container_engines_read_them(text: str, expected: Reference) -> None:
    assert read_reference(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "A/b",
        "ghcr.io/",
        "ghcr.io/a//b",
        "a/b:",
        "a/b:-x",
        "a/b@sha256:12",
        "a/b@md5:1",
        "ghcr.io/../x",
        "a b",
    ],
)
def test_what_is_no_reference_is_refused(text: str) -> None:
    with pytest.raises(BadReference):
        read_reference(text)
