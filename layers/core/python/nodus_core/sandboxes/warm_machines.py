"""What the daemon of a warm machine asks: whose it is (docs/protocols.md §2, decision 32)."""

import hmac
from dataclasses import dataclass

from nodus_core.journal.journal import Journal
from nodus_core.kernel.errors import ConditionFailed
from nodus_core.kernel.ids import digest
from nodus_core.sandboxes.admittance import gone, unauthorized


@dataclass(frozen=True)
class WarmMachines:
    """Use cases of the link function. `Refusal` reasons: `Unauthorized`, `Gone`."""

    journal: Journal

    def whose(self, machine: str, token_hash: str, code: str, enrol_hash: str) -> str | None:
        """The sandbox that a machine has become; None: nobody's yet, ask again.

        `token_hash` is that of the token that the caller has shown, `code` what its task was given, `enrol_hash` that of
        the code by which it will enrol.
        """
        found = self.journal.warm_machine(machine)
        if found is None:  # read in this order: who is not there any more may have become somebody's
            bound = self.journal.bound_machine(machine)
            if bound is None:
                raise gone(machine)
            if not hmac.compare_digest(bound.token_hash, token_hash):
                raise unauthorized(machine)
            return bound.sandbox
        if (found.token_hash, found.enrol_hash) == (token_hash, enrol_hash):
            return None
        try:
            self.journal.warm.come_up(machine, digest(code), token_hash, enrol_hash)
        except ConditionFailed as lost:
            if lost.current.get(0):
                raise unauthorized(machine) from None
            return None  # it became somebody's, or was dropped, just now: the next question tells
        return None
