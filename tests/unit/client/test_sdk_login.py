"""Login by AWS identity from Python (docs/protocols.md, section 1)."""

from __future__ import annotations

import json
from typing import Any

import nodus
import pytest
from botocore.credentials import Credentials
from nodus import _aws, errors

from tests.unit.client.fake_server import TOKEN, FakeServer, Fault

STATUS = {
    "token": TOKEN,
    "expiresAt": "2030-01-01T01:00:00Z",
    "identity": "arn:aws:iam::123456789012:role/dev",
}
REGION = "eu-central-1"


class Boto3Session:
    """As boto3's: credentials, and the region as an attribute."""

    region_name = REGION

    def get_credentials(self) -> Credentials:
        return Credentials("AKIDTEST", "secret-of-test", "session-of-test")


class BotocoreSession:
    """As botocore's: the region among its variables."""

    def get_config_variable(self, name: str) -> str | None:
        return REGION if name == "region" else None

    def get_credentials(self) -> Credentials | None:
        return Credentials("AKIDTEST", "secret-of-test")


class Nobody(BotocoreSession):
    def get_credentials(self) -> None:
        return None


@pytest.fixture
def signed_out(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> FakeServer:
    monkeypatch.delenv("NODUS_TOKEN")
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_STS"):
        monkeypatch.delenv(name, raising=False)
    return server


def answers(server: FakeServer, body: Any, status: int = 201, **more: Any) -> None:
    server.faults.append(Fault("POST .*/logins", body=json.dumps(body).encode(), status=status, **more))


@pytest.mark.req("NODQ-98")
@pytest.mark.parametrize("session", [Boto3Session(), BotocoreSession()])
def test_a_session_becomes_clients_of_both_kinds(signed_out: FakeServer, session: Any) -> None:
    answers(signed_out, {"kind": "Login", "status": STATUS})
    login = nodus.login_aws(session=session, org="default", ttl="15m")
    assert (login.expires_at, login.identity) == (STATUS["expiresAt"], STATUS["identity"])
    assert TOKEN not in repr(login)
    [seen] = signed_out.asked("POST .*/logins")
    spec = seen.json()["spec"]
    assert (spec["organization"], spec["ttl"]) == ("default", "15m")
    assert spec["aws"]["url"] == f"https://sts.{REGION}.amazonaws.com/"
    assert b"secret-of-test" not in seen.body
    assert "authorization" not in seen.headers
    with login.client(project="web") as client:
        assert list(client.agents.list()) == []
    assert signed_out.seen[-1].headers["authorization"] == f"Bearer {TOKEN}"
    assert login.async_client(project="web").project == "web"


@pytest.mark.parametrize("body", [{}, {"status": None}, {"status": {}}, {"status": {"token": 7}}, [], "x"])
def test_an_answer_that_is_no_login_is_said(signed_out: FakeServer, body: Any) -> None:
    answers(signed_out, body)
    with pytest.raises(errors.UnexpectedAnswerError):
        nodus.login_aws(session=Boto3Session())


def test_a_refusal_and_a_lost_answer_are_told_and_not_sent_again(signed_out: FakeServer) -> None:
    """A signed request logs in once."""
    answers(signed_out, {"kind": "Status", "reason": "Unauthorized", "message": "used before"}, 401)
    with pytest.raises(errors.UnauthorizedError, match="used before"):
        nodus.login_aws(session=Boto3Session())
    signed_out.faults.append(Fault("POST .*/logins", lost=True))
    with pytest.raises(errors.OutcomeUnknownError):
        nodus.login_aws(session=Boto3Session())
    assert len(signed_out.seen) == 2


def test_who_has_no_credentials_or_no_server_is_told(
    signed_out: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(errors.ConfigError, match="no AWS credentials"):
        nodus.login_aws(session=Nobody())
    monkeypatch.delenv("NODUS_SERVER")
    with pytest.raises(errors.ConfigError, match="no server"):
        nodus.login_aws(session=Boto3Session())
    assert signed_out.seen == []


def test_without_botocore_it_says_what_to_install(
    signed_out: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(_aws, "import_module", missing)
    with pytest.raises(errors.ConfigError, match="pip install botocore"):
        nodus.login_aws()
