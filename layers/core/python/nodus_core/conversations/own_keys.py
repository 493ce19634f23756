"""The user's own key of a model call: looked for at admission, read when the call is made, kept nowhere between."""

import logging
from dataclasses import dataclass

from nodus_core.conversations.secrets import KIND, fields_of, vault_place
from nodus_core.inference.errors import ModelUnavailable
from nodus_core.inference.own_keys import UnusableKey, check_address, key_field, usable_key
from nodus_core.inference.target import OwnKey, Target, Wire
from nodus_core.journal.journal import Journal
from nodus_core.journal.vault import ValueGone, Vault
from nodus_core.kernel.errors import Cause, Refusal, RetryableError, TerminalError
from nodus_core.kernel.objects import Object, ObjectKey

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class OwnKeys:
    """Keys in the Secrets of projects."""

    journal: Journal
    vault: Vault

    def read(self, run: ObjectKey, target: Target) -> str | None:
        """The key for a call of this run; None for a model that Nodus serves.

        A Secret that was changed counts at once. Raises `UnusableKey`, and `ModelUnavailable` when it cannot be read
        now: in either case no call was made.
        """
        own = target.own_key
        if own is None:
            return None
        check_address(own)
        secret = find_secret(self.journal, run.org, run.project, own)
        if secret is None or secret.value is None:
            raise UnusableKey(f"there is no Secret {own.secret!r} in this project any more")
        field = key_field(own.secret, fields_of(secret), target.wire, own.field)
        try:
            values = self.vault.read(vault_place(secret), secret.value.version)
        except ValueGone:
            raise UnusableKey(f"the values of Secret {own.secret!r} were removed") from None
        except RetryableError as error:
            raise ModelUnavailable(f"Secret {own.secret!r} cannot be read now", error.retry_after) from error
        except TerminalError as error:
            log.error("Secret %s of run %s: %s", secret.uid, run.name, error)
            raise UnusableKey(f"Secret {own.secret!r} cannot be read; the operator's log says why") from error
        return usable_key(own.secret, field, values.get(field, ""))


def find_secret(journal: Journal, org: str, project: str, own: OwnKey) -> Object | None:
    """The Secret that a model choice names."""
    return journal.object(ObjectKey(org, project, KIND, own.secret))


def check_own_key(journal: Journal, run: ObjectKey, wire: Wire, own: OwnKey, field: str) -> None:
    """Refuses a run whose Secret, or field of it, does not exist, before anything is started (NOD-114).

    `field` is the path of the run's spec that names it. Raises `Refusal` `NotFound` or `Invalid`.
    """
    secret = find_secret(journal, run.org, run.project, own)
    if secret is None:
        message = f"there is no Secret {own.secret!r} in this project, which the model of AgentRun {run.name!r} needs"
        cause = Cause(field, f"names Secret {own.secret!r}, which does not exist", "FieldValueNotFound")
        raise Refusal("NotFound", message, causes=(cause,), kind=KIND, name=own.secret)
    try:
        key_field(own.secret, fields_of(secret), wire, own.field)
    except UnusableKey as problem:
        message = f"AgentRun {run.name!r} cannot be run: {problem}"
        raise Refusal(
            "Invalid", message, causes=(Cause(field, str(problem)),), kind=run.kind, name=run.name
        ) from None
