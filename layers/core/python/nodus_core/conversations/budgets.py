"""Budgets: their objects, each with the account that counts in the same commit (NOD-146)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from nodus_core.billing import balance
from nodus_core.conversations.definitions import Definitions
from nodus_core.journal.accounts import MOST_BUDGETS, closing, limiting, opening
from nodus_core.journal.store import Operation
from nodus_core.kernel.errors import ConditionFailed, CorruptRow, Refusal
from nodus_core.kernel.money import BUDGET, Account
from nodus_core.kernel.objects import Object
from nodus_core.resources.fields import money
from nodus_core.resources.manifest import Manifest


@dataclass(frozen=True)
class Budgets(Definitions):
    """Use cases of Budgets. Another limit counts at once; what is under way under the old one ends under it.

    Deleting a Budget ends its limit; one that is made again under its name begins at nothing spent.
    """

    kind: str = BUDGET

    def begun(self, manifest: Manifest) -> dict[str, Any]:
        """Nothing is spent yet. From then on the account says how it is."""
        limit = _limit(manifest)
        return balance.shown(Account("", BUDGET, "", manifest.name, limit, available=limit))

    def status(self, old: Object) -> Mapping[str, Any]:
        """What its account says."""
        return balance.shown(self._account(old))

    def added(self, obj: Object, manifest: Manifest) -> Sequence[Operation]:
        """The account of a new Budget. Raises `Refusal` `Invalid` where the project has enough of them."""
        known = self.shelf.journal.accounts.budgets_of(obj.key.org, obj.key.project)
        if len(known) >= MOST_BUDGETS:
            message = f"project {obj.key.project!r} has {MOST_BUDGETS} Budgets, which is the most; delete one"
            raise Refusal("Invalid", message, kind=BUDGET, name=obj.key.name)
        limit, key = _limit(manifest), obj.key
        account = Account(obj.uid, BUDGET, key.org, key.name, limit, available=limit, project=key.project)
        return opening(account, known)

    def changed(self, old: Object, manifest: Manifest) -> Sequence[Operation]:
        """The account under its new limit."""
        return (limiting(self._account(old), _limit(manifest), self.shelf.clock.now()),)

    def removed(self, old: Object) -> Sequence[Operation]:
        """The account's end: whoever waits for it goes on, and its row goes when nobody holds anything of it."""
        return closing(self._account(old), self.shelf.clock.now())

    def _account(self, obj: Object) -> Account:
        account = self.shelf.journal.accounts.account(obj.uid)
        if account is not None:
            return account
        if self.shelf.journal.object(obj.key) != obj:
            # The Budget was removed or changed meanwhile: look again.
            raise ConditionFailed("read-account", {})
        raise CorruptRow(f"Budget {obj.key.name!r} ({obj.uid}) has no account")


def _limit(manifest: Manifest) -> Decimal:
    return money(str(manifest.spec["limitUSD"]))
