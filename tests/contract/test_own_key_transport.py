"""Calls with a user's own key on the real transport: where they may go, what they carry, what is kept of them."""

import json
import socket
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from nodus_core.inference import (
    ModelOutcomeUnknown,
    ModelRefusedRequest,
    ModelRequest,
    ModelUnavailable,
    UserMessage,
    Wire,
)
from nodus_core.inference.own_keys import own_target
from nodus_core.inference.target import OwnKey
from nodus_core.providers import Credentials, HttpModels, Timeouts
from nodus_core.providers.credentials import OwnKeyNetwork
from nodus_core.providers.public_network import ForbiddenAddress, PublicTransport, WrongCertificate
from tls_providers import HOST, Provider, Told, tls_provider

KEY = 'sk-plum-9f31/KITE"77aa'
REPLY = {
    "anthropic": {"content": [{"type": "text", "text": "hello"}], "stop_reason": "end_turn"},
    "openai": {"choices": [{"message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}]},
}
PUBLIC = "93.184.216.34"


@pytest.fixture(params=["anthropic", "openai"])
def wire(request: pytest.FixtureRequest) -> Wire:
    return request.param


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[Provider]:
    with tls_provider(tmp_path, lambda _: Told(status=500)) as running:
        yield running


def models(provider: Provider, **timeouts: float) -> HttpModels:
    """The models of an operator who has placed the provider's name on this machine."""
    network = OwnKeyNetwork({HOST: "127.0.0.1"}, provider.certificates)
    return HttpModels(Credentials({}, network), Timeouts(**timeouts))


def ask(wire: Wire, url: str) -> ModelRequest:
    target = own_target("some-model", wire, OwnKey("model-key", base_url=url))
    return ModelRequest(target, "You are careful.", (UserMessage("hi"),))


@pytest.mark.req("NOD-109", "NOD-110", "NOD-115", "NOD-126", "NEX-02", "NEX-03")
def test_a_call_goes_to_the_users_address_with_the_users_key(provider: Provider, wire: Wire) -> None:
    provider.tell = lambda _: Told(body=json.dumps(REPLY[wire]).encode())
    reply = models(provider).call(ask(wire, provider.url), KEY)
    assert reply.message.text == "hello"
    (sent,) = provider.requests
    path = {"anthropic": "/v1/messages", "openai": "/v1/chat/completions"}[wire]
    assert (sent.path, sent.headers["host"]) == (path, f"{HOST}:{provider.port}")
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert json.loads(sent.body)["model"] == "some-model"


@pytest.mark.req("NOD-116")
def test_nothing_of_the_environment_leads_a_call_elsewhere(
    provider: Provider, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("SSL_CERT_FILE", "/nonexistent")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://127.0.0.1:9")
    monkeypatch.setenv("OPENAI_BASE_URL", "https://127.0.0.1:9")
    provider.tell = lambda _: Told(body=json.dumps(REPLY[wire]).encode())
    assert models(provider).call(ask(wire, provider.url), KEY).message.text == "hello"


@pytest.mark.req("NOD-117")
def test_a_redirect_is_told_and_its_target_gets_nothing(
    provider: Provider, wire: Wire, tmp_path: Path
) -> None:
    with tls_provider(tmp_path, lambda _: Told()) as target:
        place = {"Location": f"{target.url}/{KEY}"}
        provider.tell = lambda _: Told(status=302, headers=place)
        with pytest.raises(ModelRefusedRequest, match="redirects are not followed") as raised:
            models(provider).call(ask(wire, provider.url), KEY)
        assert (raised.value.status, target.requests) == (302, [])
        assert KEY not in str(raised.value)


def spellings(key: str) -> list[str]:
    """A key as echoes write it."""
    return [
        key,
        json.dumps(key)[1:-1],
        key.replace("/", "\\/").replace('"', '\\"'),
        "".join(f"\\u{ord(char):04x}" for char in key),
        "".join(f"%{ord(char):02X}" for char in key),
        f"Bearer {key}".replace('"', "%22"),
    ]


@pytest.mark.req("FLD-14", "NOD-118")
@pytest.mark.parametrize("status", [200, 400, 401, 429, 500, 504])
def test_an_echo_of_the_key_is_taken_out_of_whatever_is_said(
    provider: Provider, wire: Wire, status: int
) -> None:
    for spelled in spellings(KEY):
        escaped = spelled if spelled != KEY else json.dumps(KEY)[1:-1]
        error = f'{{"error": {{"message": "you sent {escaped} to us"}}}}'
        text = json.dumps(REPLY[wire]).replace("hello", f"you sent {escaped} to us")
        headers = {"X-Echo": KEY, "Retry-After": KEY, "Location": KEY}
        told = Told(status, (text if status == 200 else error).encode(), headers)
        provider.tell = partial(_tell, told)
        said = outcome(provider, wire)
        assert "plum-9f31" not in said, spelled
        assert "you sent" in said
        assert KEY not in json.loads(json.dumps(said))


def _tell(told: Told, _: object) -> Told:
    return told


def outcome(provider: Provider, wire: Wire) -> str:
    """All that is kept of a call: the reply's record, or the error."""
    try:
        reply = models(provider).call(ask(wire, provider.url), KEY)
    except (ModelRefusedRequest, ModelUnavailable, ModelOutcomeUnknown) as error:
        return f"{error} {error.__dict__}"
    return json.dumps(reply.message.to_record())


@pytest.mark.req("NOD-086", "NOD-123")
@pytest.mark.parametrize(
    "told", [None, Told(body=b"x" * 100, headers={"Content-Type": "text/plain"}, drip=True)]
)
def test_a_call_without_a_whole_answer_may_have_been_made(
    provider: Provider, wire: Wire, told: Told | None
) -> None:
    provider.tell = lambda _: told
    with pytest.raises(ModelOutcomeUnknown):
        models(provider, reply=1).call(ask(wire, provider.url), KEY)
    assert len(provider.requests) == 1


def test_a_provider_that_refuses_the_connection_has_certainly_not_been_asked(
    provider: Provider, wire: Wire
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"https://{HOST}:{free.getsockname()[1]}/v1"
    with pytest.raises(ModelUnavailable, match="could not be reached"):
        models(provider).call(ask(wire, url), KEY)


@pytest.mark.req("FLD-13", "NOD-116")
@pytest.mark.parametrize("host", ["models.example.com", "other.example.com"])
def test_who_cannot_prove_the_name_gets_no_key(tmp_path: Path, wire: Wire, host: str) -> None:
    with tls_provider(tmp_path, lambda _: Told(), host) as impostor:
        trusted = impostor.certificates if host != HOST else None
        port = HttpModels(Credentials({}, OwnKeyNetwork({HOST: "127.0.0.1"}, trusted)))
        with pytest.raises(ModelRefusedRequest, match="certificate"):
            port.call(ask(wire, impostor.url), KEY)
        assert impostor.requests == []


# --- where a name leads ---


class Names:
    """A resolver that gives prepared answers, one after the other, and counts."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self._answers = list(answers)
        self.asked: list[tuple[str, int]] = []

    def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append((host, port))
        return self._answers.pop(0)


@pytest.fixture
def dialled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Addresses that were connected to; a public one is this machine here."""
    seen: list[str] = []
    real: Callable[..., socket.socket] = socket.create_connection

    def connect(address: tuple[str, int], *more: Any, **named: Any) -> socket.socket:
        seen.append(address[0])
        return real(("127.0.0.1", address[1]), *more, **named)

    monkeypatch.setattr(socket, "create_connection", connect)
    return seen


def client(provider: Provider, names: Names) -> httpx2.Client:
    return httpx2.Client(transport=PublicTransport({}, provider.certificates, names))


@pytest.mark.req("FLD-13", "NOD-116")
def test_the_address_that_was_judged_is_the_one_that_is_dialled(
    provider: Provider, dialled: list[str]
) -> None:
    provider.tell = lambda _: Told(body=b"{}")
    names = Names([PUBLIC], ["127.0.0.1"])
    with client(provider, names) as sender:
        assert sender.post(provider.url).status_code == 200
        assert (names.asked, dialled) == ([(HOST, provider.port)], [PUBLIC])
        with pytest.raises(ForbiddenAddress):  # every request is judged anew
            sender.post(provider.url)
    assert (len(provider.requests), dialled) == (1, [PUBLIC])


@pytest.mark.req("FLD-13", "NOD-116")
@pytest.mark.parametrize(
    "answer",
    [
        ["127.0.0.1"],
        [PUBLIC, "10.0.0.5"],
        ["169.254.169.254"],
        ["::ffff:169.254.169.254"],
        ["64:ff9b::a00:1"],
        ["2002:7f00:1::"],
        ["fd00:ec2::254"],
        ["fe80::1%2"],
        ["::1"],
        ["0.0.0.0"],
        ["224.0.0.1"],
        ["100.64.0.7"],
    ],
)
def test_a_name_with_any_address_that_is_not_public_is_not_dialled(
    provider: Provider, dialled: list[str], answer: list[str]
) -> None:
    with client(provider, Names(answer)) as sender, pytest.raises(ForbiddenAddress) as raised:
        sender.post(provider.url)
    assert (dialled, provider.requests) == ([], [])
    assert answer[-1] not in str(raised.value)


@pytest.mark.req("FLD-13")
@pytest.mark.parametrize(
    "host", ["127.0.0.1", "[::1]", "localhost", "2130706433", "0x7f.1", "[::ffff:7f00:1]"]
)
def test_a_host_that_is_written_as_an_address_is_judged_like_any_other(
    provider: Provider, dialled: list[str], host: str
) -> None:
    with (
        httpx2.Client(transport=PublicTransport(certificates=provider.certificates)) as sender,
        pytest.raises(ForbiddenAddress),
    ):
        sender.post(f"https://{host}:{provider.port}/v1")
    assert dialled == []


def test_plain_http_is_never_spoken(provider: Provider, dialled: list[str]) -> None:
    with client(provider, Names([PUBLIC])) as sender, pytest.raises(ForbiddenAddress, match="https"):
        sender.post(f"http://{HOST}:{provider.port}/v1")
    assert dialled == []


def test_a_name_that_nobody_knows_may_be_known_later(provider: Provider, wire: Wire) -> None:
    unknown = "https://models.invalid/v1"
    with pytest.raises(ModelUnavailable, match="could not be looked up"):
        models(provider).call(ask(wire, unknown), KEY)


def test_a_further_address_is_tried_when_one_does_not_answer(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    real: Callable[..., socket.socket] = socket.create_connection

    def connect(address: tuple[str, int], *more: Any, **named: Any) -> socket.socket:
        if address[0] == PUBLIC:
            raise ConnectionRefusedError(111, "refused")
        return real(("127.0.0.1", address[1]), *more, **named)

    monkeypatch.setattr(socket, "create_connection", connect)
    provider.tell = lambda _: Told(body=b"{}")
    with client(provider, Names([PUBLIC, "1.1.1.1"])) as sender:
        assert sender.post(provider.url).status_code == 200


def test_a_certificate_of_nobody_is_told_as_such(tmp_path: Path, dialled: list[str]) -> None:
    with tls_provider(tmp_path, lambda _: Told()) as unknown:
        transport = PublicTransport(resolver=Names([PUBLIC]))
        with httpx2.Client(transport=transport) as sender, pytest.raises(WrongCertificate):
            sender.post(unknown.url)


@pytest.mark.parametrize("url", ["https://[v1.a]/v1", "https://1.2.3.999/v1"])
def test_an_address_that_no_client_takes_was_certainly_not_called(
    wire: Wire, url: str, dialled: list[str]
) -> None:
    """Also one that an earlier release has accepted: nobody is asked what became of such a call."""
    with pytest.raises(ModelRefusedRequest, match="was not called"):
        HttpModels(Credentials({})).call(ask(wire, url), KEY)
    assert dialled == []
