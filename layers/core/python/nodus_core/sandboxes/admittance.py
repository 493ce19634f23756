"""Whether a daemon that has come up may speak for its sandbox: its credential, its guard, its secrets."""

import hmac
import logging
from collections.abc import Mapping
from dataclasses import dataclass

from nodus_core.journal.journal import Journal
from nodus_core.journal.ports import Clock
from nodus_core.journal.sandboxes import Greeting
from nodus_core.journal.vault import Vault
from nodus_core.kernel.errors import Refusal
from nodus_core.kernel.sandboxes import Sandbox
from nodus_core.sandboxes.secret_values import NotHandedOver, SecretValues

log = logging.getLogger(__name__)

UNGUARDED = (
    "nothing in this sandbox enforces the egress policy {policy}, so no command is run in it. The log of its daemon "
    "says why its egress guard does not hold; docs/operations.md says what the guard needs."
)
"""The reason of a sandbox that could not keep its egress policy, and what to do."""

UNISOLATED = (
    "secrets are not handed to a sandbox without isolation, where every process of the machine's user could read them. "
    "Take spec.secrets away, or run it where sandboxes are isolated (docs/operations.md)."
)
"""The reason of a sandbox that was to have secrets on a machine without isolation."""


@dataclass(frozen=True)
class Admittance:
    """Lets daemons in. `Refusal` reasons: `Unauthorized`, `Gone`."""

    journal: Journal
    clock: Clock
    vault: Vault

    def admit(self, sandbox: Sandbox, greeting: Greeting, code: str) -> Mapping[str, str]:
        """Binds the first daemon that comes with the code to its sandbox, and notes one that came up again.

        `code` is the hash of what it enrols with. Returns the values of its secret variables by name. Raises
        `ConditionFailed` when the sandbox is not as it was seen.
        """
        values = self._secrets(sandbox, greeting, code) if sandbox.secrets else {}
        if sandbox.token_hash is None:
            self._refuse_unguarded(sandbox, greeting, code)
            self.journal.sandboxes.enrol(sandbox.id, code, greeting)
        else:
            self.journal.sandboxes.reboot(sandbox.id, greeting)
        return values

    def _secrets(self, sandbox: Sandbox, greeting: Greeting, code: str) -> Mapping[str, str]:
        """What `hello` hands over to the one daemon that may speak for the sandbox (NOD-455)."""
        known, said = (
            (sandbox.token_hash, greeting.token_hash) if sandbox.token_hash else (sandbox.enrol_hash, code)
        )
        if not hmac.compare_digest(known, said):
            raise unauthorized(sandbox.id)
        if sandbox.token_hash is None and not greeting.isolated:
            raise self._refused(sandbox, UNISOLATED)
        head = self.journal.conversation(sandbox.conversation)
        if head is None:
            raise gone(sandbox.id)
        try:
            return SecretValues(self.vault).of(sandbox, head.object)
        except NotHandedOver as problem:
            raise self._refused(sandbox, f"its secrets cannot be handed over: {problem}") from problem

    def _refuse_unguarded(self, sandbox: Sandbox, greeting: Greeting, code: str) -> None:
        """Ends a sandbox without a guard, unless its launcher was told to do without.

        That holds for every policy: Open, too, promises that private and metadata addresses stay closed (NOD-460).
        Only the first greeting counts, which has the launcher's word: afterwards a command may speak for the daemon.
        """
        if greeting.guard is not None or greeting.opted_in:
            return
        if not hmac.compare_digest(sandbox.enrol_hash, code):
            raise unauthorized(sandbox.id)
        raise self._refused(sandbox, UNGUARDED.format(policy=sandbox.egress))

    def _refused(self, sandbox: Sandbox, reason: str) -> Refusal:
        """Ends a sandbox that must take no command. Raises `ConditionFailed` when it is not as it was seen."""
        self.journal.sandboxes.gone(sandbox.id, reason, self.clock.now(), only=(sandbox.state,))
        log.error("sandbox %s is refused: %s", sandbox.id, reason)
        return gone(sandbox.id)


def unauthorized(sandbox: str) -> Refusal:
    return Refusal("Unauthorized", f"the credential does not speak for sandbox {sandbox!r}")


def gone(sandbox: str) -> Refusal:
    return Refusal("Gone", f"sandbox {sandbox!r} is released")
