"""The vault in Secrets Manager: one secret for each Secret, `PREFIX/ORG/PROJECT/UID`, encrypted by KMS.

A version is named by whoever reads it, never by a label, so that a write that was never committed to the
journal changes nothing.
"""

import json
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from nodus_core.aws.failures import code_of, translated
from nodus_core.journal.vault import ValueGone, VaultPlace
from nodus_core.kernel.errors import TerminalError

ACCOUNTS_KEY = "alias/aws/secretsmanager"
"""The KMS key that AWS keeps for the Secrets Manager of each account."""

_GONE = frozenset({"ResourceNotFoundException", "InvalidRequestException"})
"""There is no such secret or version, or the secret is marked for deletion."""


class SecretsManagerVault:
    """`Vault` below one prefix. `client` is botocore's for Secrets Manager, `key` the KMS key of what is new."""

    def __init__(self, client: Any, prefix: str, key: str = ACCOUNTS_KEY) -> None:
        self._client = client
        self._prefix = prefix
        self._key = key

    def create(self, place: VaultPlace, values: Mapping[str, str]) -> str:
        with translated(f"storing the values of Secret {place.uid}"):
            answer = self._client.create_secret(
                Name=self._name(place),
                Description=f"Nodus: a Secret of project {place.project}",
                SecretString=_text(values),
                KmsKeyId=self._key,
            )
        return str(answer["VersionId"])

    def replace(self, place: VaultPlace, values: Mapping[str, str]) -> str:
        with translated(f"storing the values of Secret {place.uid}"):
            try:
                answer = self._client.put_secret_value(SecretId=self._name(place), SecretString=_text(values))
            except ClientError as error:
                raise _gone_or(error, place) from error
        return str(answer["VersionId"])

    def read(self, place: VaultPlace, version: str) -> Mapping[str, str]:
        with translated(f"reading the values of Secret {place.uid}"):
            try:
                answer = self._client.get_secret_value(SecretId=self._name(place), VersionId=version)
            except ClientError as error:
                raise _gone_or(error, place) from error
        return _values(answer.get("SecretString"), place)

    def remove(self, place: VaultPlace) -> None:
        with translated(f"removing the values of Secret {place.uid}"):
            try:
                self._client.delete_secret(SecretId=self._name(place), ForceDeleteWithoutRecovery=True)
            except ClientError as error:
                if code_of(error) not in _GONE:
                    raise

    def _name(self, place: VaultPlace) -> str:
        return f"{self._prefix}/{place.org}/{place.project}/{place.uid}"


def _text(values: Mapping[str, str]) -> str:
    return json.dumps(dict(values), ensure_ascii=False, separators=(",", ":"))


def _values(text: Any, place: VaultPlace) -> Mapping[str, str]:
    try:
        return {str(field): str(value) for field, value in json.loads(text).items()}
    except (TypeError, ValueError, AttributeError):
        # The parser's message and chain would quote the value.
        raise TerminalError(f"the values of Secret {place.uid} are not those that were stored") from None


def _gone_or(error: ClientError, place: VaultPlace) -> Exception:
    if code_of(error) in _GONE:
        return ValueGone(f"the vault has no values of Secret {place.uid}")
    return error
