"""`nodus login --aws`: the signed request of docs/protocols.md, section 1."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from nodus import _aws

from tests.unit.client.conftest import Cli
from tests.unit.client.fake_server import TOKEN, FakeServer, Fault

MADE = {
    "apiVersion": "nodus.dev/v1",
    "kind": "Login",
    "metadata": {},
    "status": {
        "token": TOKEN,
        "expiresAt": "2030-01-01T01:00:00Z",
        "identity": "arn:aws:iam::123456789012:role/dev",
    },
}


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Two profiles and nothing else of the machine's AWS configuration."""
    for name in (
        "AWS_PROFILE",
        "AWS_REGION",
        "AWS_DEFAULT_REGION",
        "AWS_ENDPOINT_URL",
        "AWS_ENDPOINT_URL_STS",
    ):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    (tmp_path / "config").write_text(
        "[profile work]\nregion = eu-central-1\n[profile empty]\nregion = eu-west-1\n"
    )
    (tmp_path / "credentials").write_text(
        "[work]\naws_access_key_id = AKIDWORK\naws_secret_access_key = secret-of-work\n"
        "aws_session_token = session-of-work\n"
    )
    return tmp_path


@pytest.fixture
def signed_out(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> FakeServer:
    monkeypatch.delenv("NODUS_TOKEN")
    monkeypatch.delenv("NODUS_SERVER")
    return server


def accepted(server: FakeServer, **reply: Any) -> None:
    body = json.dumps(reply.pop("answer", MADE)).encode()
    server.faults.append(Fault("POST /apis/nodus.dev/v1/logins", body=body, **{"status": 201, **reply}))


@pytest.mark.req("NOD-481")
def test_the_identity_of_a_profile_gets_a_key_that_is_stored(
    cli: Cli, signed_out: FakeServer, aws: Path, config_file: Path
) -> None:
    accepted(signed_out)
    output = cli(
        "login",
        "--aws",
        "--profile",
        "work",
        "--ttl",
        "8h",
        "--server",
        signed_out.address,
        "--org",
        "default",
    )
    assert (output.code, output.err) == (0, "")
    assert output.out == (
        f"Signed in to {signed_out.address} (context default)"
        " as arn:aws:iam::123456789012:role/dev until 2030-01-01T01:00:00Z.\n"
    )
    assert json.loads(config_file.read_text())["contexts"]["default"]["token"] == TOKEN
    [seen] = signed_out.asked("POST .*/logins")
    assert "authorization" not in seen.headers
    spec = seen.json()["spec"]
    assert (spec["organization"], spec["ttl"]) == ("default", "8h")
    assert spec["aws"]["url"] == "https://sts.eu-central-1.amazonaws.com/"
    assert spec["aws"]["headers"]["X-Amz-Security-Token"] == "session-of-work"
    assert "secret-of-work" not in seen.body.decode()


def test_the_signature_is_that_of_exactly_these_words(aws: Path) -> None:
    request = _aws.signed("https://API.example.com:8443/base", _aws.session_of("work"))
    headers = request["headers"]
    assert (request["method"], request["body"]) == ("POST", "Action=GetCallerIdentity&Version=2011-06-15")
    assert headers["X-Nodus-Server"] == "api.example.com:8443"
    words = headers["Authorization"].split("SignedHeaders=")[1].split(",")[0].split(";")
    assert words == ["content-type", "host", "x-amz-date", "x-amz-security-token", "x-nodus-server"]
    again = AWSRequest(method="POST", url=request["url"], data=request["body"])
    for name, value in headers.items():
        if name != "Authorization":
            again.headers[name] = value
    again.context["timestamp"] = headers["X-Amz-Date"]
    signer = SigV4Auth(Credentials("AKIDWORK", "secret-of-work", "session-of-work"), "sts", "eu-central-1")
    text = signer.string_to_sign(again, signer.canonical_request(again))
    assert headers["Authorization"].endswith(f"Signature={signer.signature(text, again)}")


@pytest.mark.parametrize(
    ("environment", "url"),
    [
        ({}, "https://sts.amazonaws.com/"),
        ({"AWS_DEFAULT_REGION": "cn-north-1"}, "https://sts.cn-north-1.amazonaws.com.cn/"),
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:4566"}, "http://127.0.0.1:4566/"),
        (
            {"AWS_ENDPOINT_URL_STS": "http://127.0.0.1:4567/", "AWS_ENDPOINT_URL": "http://127.0.0.1:4566"},
            "http://127.0.0.1:4567/",
        ),
    ],
)
def test_where_the_request_would_go(
    aws: Path, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], url: str
) -> None:
    for name, value in {"AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "s", **environment}.items():
        monkeypatch.setenv(name, value)
    assert _aws.signed("https://api.example.com", _aws.session_of(None))["url"] == url


@pytest.mark.parametrize(
    ("server", "host"),
    [
        ("https://api.example.com", "api.example.com"),
        ("https://api.example.com:443/x", "api.example.com"),
        ("http://127.0.0.1:4510/base", "127.0.0.1:4510"),
        ("http://[::1]:80", "[::1]"),
    ],
)
def test_the_name_of_the_server_that_is_signed(aws: Path, server: str, host: str) -> None:
    assert _aws.signed(server, _aws.session_of("work"))["headers"]["X-Nodus-Server"] == host


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ("--profile", "nope"),
            "Error (NoAWSCredentials): AWS: The config profile (nope) could not be found",
        ),
        (("--profile", "empty"), "Error (NoAWSCredentials): there are no AWS credentials"),
        (("--key", "x"), "give --key or --aws, not both"),
    ],
)
def test_who_cannot_sign_is_told_why(
    cli: Cli, signed_out: FakeServer, aws: Path, words: tuple[str, ...], says: str
) -> None:
    output = cli("login", "--aws", *words, "--server", signed_out.address)
    assert (output.code, says in output.err) == (1, True), output.err
    assert not signed_out.seen


def test_a_refused_identity_stores_nothing_and_is_not_sent_again(
    cli: Cli, signed_out: FakeServer, aws: Path, config_file: Path
) -> None:
    refusal = {"kind": "Status", "reason": "Forbidden", "message": "mapped to no organization"}
    accepted(signed_out, status=403, answer=refusal)
    output = cli("login", "--aws", "--profile", "work", "--server", signed_out.address)
    assert (output.code, output.err) == (1, "Error (Forbidden): mapped to no organization\n")
    assert len(signed_out.seen) == 1
    assert not config_file.exists()


def test_options_of_the_other_login_are_refused(cli: Cli, server: FakeServer) -> None:
    assert "--profile and --ttl go with --aws" in cli("login", "--profile", "work").err
