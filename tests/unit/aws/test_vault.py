"""The vault in Secrets Manager: a secret for each Secret, versions by name, nothing shown in errors."""

from collections.abc import Callable
from typing import Any

import pytest
from botocore.stub import ANY
from nodus_core.aws.vault import SecretsManagerVault
from nodus_core.journal.vault import ValueGone, VaultPlace
from nodus_core.kernel.errors import RetryableError, TerminalError

PLACE = VaultPlace("acme", "web", "secret-1")
NAME = "nodus/acme/web/secret-1"


def test_a_version_is_read_whatever_came_after_it(moto: Callable[..., Any]) -> None:
    client = moto("secretsmanager")
    vault = SecretsManagerVault(client, "nodus")
    first = vault.create(PLACE, {"A": "ünö", "B": 'with "quotes"'})
    second = vault.replace(PLACE, {"A": "two"})
    assert vault.read(PLACE, first) == {"A": "ünö", "B": 'with "quotes"'}
    assert vault.read(PLACE, second) == {"A": "two"}
    assert [secret["Name"] for secret in client.list_secrets()["SecretList"]] == [NAME]


def test_what_is_removed_is_gone_and_may_be_removed_again(moto: Callable[..., Any]) -> None:
    vault = SecretsManagerVault(moto("secretsmanager"), "nodus")
    version = vault.create(PLACE, {"A": "one"})
    vault.remove(PLACE)
    vault.remove(PLACE)
    with pytest.raises(ValueGone):
        vault.read(PLACE, version)
    with pytest.raises(ValueGone):
        vault.replace(PLACE, {"A": "two"})


def test_removal_leaves_no_time_in_which_it_could_be_recovered(stub: Callable[[str], Any]) -> None:
    client, answers = stub("secretsmanager")
    answers.add_response("delete_secret", {}, {"SecretId": NAME, "ForceDeleteWithoutRecovery": True})
    SecretsManagerVault(client, "nodus").remove(PLACE)


@pytest.mark.parametrize(
    ("code", "status", "error"),
    [("InternalServiceError", 500, RetryableError), ("AccessDeniedException", 400, TerminalError)],
)
def test_other_failures_are_told_without_the_value(
    stub: Callable[[str], Any], code: str, status: int, error: type[Exception]
) -> None:
    client, answers = stub("secretsmanager")
    for operation in ("create_secret", "put_secret_value", "get_secret_value", "delete_secret"):
        answers.add_client_error(operation, code, http_status_code=status)
    vault = SecretsManagerVault(client, "nodus")
    for call in (
        lambda: vault.create(PLACE, {"A": "plum-9f31"}),
        lambda: vault.replace(PLACE, {"A": "plum-9f31"}),
        lambda: vault.read(PLACE, "v" * 32),
        lambda: vault.remove(PLACE),
    ):
        with pytest.raises(error, match="Secret secret-1") as raised:
            call()
        assert "plum-9f31" not in str(raised.value)


def test_a_value_of_another_shape_is_not_shown(moto: Callable[..., Any]) -> None:
    client = moto("secretsmanager")
    version = client.create_secret(Name=NAME, SecretString="plum-9f31")["VersionId"]
    with pytest.raises(TerminalError) as raised:
        SecretsManagerVault(client, "nodus").read(PLACE, version)
    assert "plum-9f31" not in str(raised.value)
    assert raised.value.__context__ is None or raised.value.__suppress_context__


@pytest.mark.req("NOD-465")
@pytest.mark.parametrize("key", ["alias/aws/secretsmanager", "arn:aws:kms:eu-central-1:123456789012:key/k"])
def test_values_are_encrypted_by_the_key_that_is_named(stub: Callable[[str], Any], key: str) -> None:
    client, answers = stub("secretsmanager")
    answers.add_response(
        "create_secret",
        {"VersionId": "v" * 32},
        {"Name": NAME, "Description": ANY, "SecretString": ANY, "KmsKeyId": key},
    )
    SecretsManagerVault(client, "nodus", key).create(PLACE, {"A": "one"})
