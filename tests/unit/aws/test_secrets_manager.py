"""Secrets are read at most every 30 seconds."""

from collections.abc import Callable
from typing import Any

import pytest
from nodus_core.aws.secrets import SecretsManagerSecrets
from nodus_core.kernel.errors import RetryableError, TerminalError


class _Hand:
    """Seconds, as a test sets them."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_change_is_seen_within_thirty_seconds(moto: Callable[..., Any]) -> None:
    client, hand = moto("secretsmanager"), _Hand()
    client.create_secret(Name="nodus/providers", SecretString="old")
    secrets = SecretsManagerSecrets(client, hand)
    assert secrets.read("nodus/providers") == "old"
    client.put_secret_value(SecretId="nodus/providers", SecretString="new")

    hand.now = 29.9
    assert secrets.read("nodus/providers") == "old"
    hand.now = 30.0
    assert secrets.read("nodus/providers") == "new"


def test_each_secret_is_kept_apart(moto: Callable[..., Any]) -> None:
    client = moto("secretsmanager")
    for name in ("a", "b"):
        client.create_secret(Name=name, SecretString=f"value of {name}")
    secrets = SecretsManagerSecrets(client)

    assert [secrets.read(name) for name in ("a", "b", "a")] == ["value of a", "value of b", "value of a"]


def test_an_error_is_not_kept(stub: Callable[[str], Any]) -> None:
    client, answers = stub("secretsmanager")
    answers.add_client_error("get_secret_value", "InternalServiceError", http_status_code=500)
    answers.add_response("get_secret_value", {"SecretString": "s"}, {"SecretId": "x"})
    secrets = SecretsManagerSecrets(client)

    with pytest.raises(RetryableError, match="secret x"):
        secrets.read("x")
    assert secrets.read("x") == "s"


def test_a_missing_secret_is_a_terminal_error(moto: Callable[..., Any]) -> None:
    with pytest.raises(TerminalError, match=r"secret gone.*ResourceNotFound"):
        SecretsManagerSecrets(moto("secretsmanager")).read("gone")


def test_a_binary_secret_is_refused(moto: Callable[..., Any]) -> None:
    client = moto("secretsmanager")
    client.create_secret(Name="b", SecretBinary=b"\x00")

    with pytest.raises(TerminalError, match="secret b is binary"):
        SecretsManagerSecrets(client).read("b")
