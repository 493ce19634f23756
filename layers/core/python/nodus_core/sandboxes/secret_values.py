"""The values of a sandbox's secret variables: read from the vault when its daemon comes up, and kept nowhere.

They travel in the answer to `hello` alone: no row, payload, log, event or execution holds one (FLD-14).
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from nodus_core.journal.vault import ValueGone, Vault, VaultPlace
from nodus_core.kernel.errors import TerminalError
from nodus_core.kernel.objects import ObjectKey
from nodus_core.kernel.sandboxes import Sandbox, SecretVariable

MOST_VALUE = 131_071
"""Bytes of `NAME=VALUE`, which Linux hands to a program as one text."""

MOST_TOGETHER = 524_288
"""Bytes of all of them, within what a program's environment and the answer to `hello` hold."""

log = logging.getLogger(__name__)


class NotHandedOver(Exception):
    """The sandbox cannot have its secrets, and must not go on without them. The message names no value."""


@dataclass(frozen=True)
class SecretValues:
    """Reads values by their pinned references."""

    vault: Vault

    def of(self, sandbox: Sandbox, owner: ObjectKey) -> Mapping[str, str]:
        """The values of its variables by their names; `owner` is the object whose sandbox it is.

        Raises `NotHandedOver`, and `RetryableError` when the vault may answer later.
        """
        read: dict[tuple[str, str], Mapping[str, str]] = {}
        values: dict[str, str] = {}
        for variable in sandbox.secrets:
            source = (variable.uid, variable.version)
            if source not in read:
                read[source] = self._read(
                    sandbox, variable, VaultPlace(owner.org, owner.project, variable.uid)
                )
            values[variable.env] = _checked(variable, read[source].get(variable.field))
        together = sum(len(name) + len(value.encode()) + 2 for name, value in values.items())
        if together > MOST_TOGETHER:
            raise NotHandedOver(
                f"its secrets take {together} bytes together, at most {MOST_TOGETHER} are taken"
            )
        return values

    def _read(self, sandbox: Sandbox, variable: SecretVariable, place: VaultPlace) -> Mapping[str, str]:
        try:
            return self.vault.read(place, variable.version)
        except ValueGone:
            raise NotHandedOver(
                f"the values of Secret {variable.secret!r} were removed since they were pinned"
            ) from None
        except TerminalError as error:
            log.error("Secret %s of sandbox %s: %s", place.uid, sandbox.id, error)
            raise NotHandedOver(
                f"Secret {variable.secret!r} cannot be read; the operator's log says why"
            ) from error


def _checked(variable: SecretVariable, value: str | None) -> str:
    where = f"field {variable.field!r} of Secret {variable.secret!r}"
    if value is None:
        raise NotHandedOver(f"{where} is not there any more")
    if "\x00" in value:
        raise NotHandedOver(f"{where} holds a NUL character, which no environment variable can")
    if len(variable.env) + len(value.encode()) + 1 > MOST_VALUE:
        raise NotHandedOver(
            f"{where} is too long for an environment variable: at most {MOST_VALUE} bytes are taken"
        )
    return value
