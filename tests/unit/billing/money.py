"""Runs that cost something, over REST: agents with caps, Budgets, credits, and what the accounts say."""

from decimal import Decimal
from typing import Any

from nodus_core.conversations.shelf import Shelf
from nodus_core.inference.exchange import Usage
from nodus_core.journal.codec import from_row
from nodus_core.kernel.money import Account
from nodus_core.kernel.objects import Run
from nodus_core.kernel.sandboxes import Sandbox
from nodus_core.testing.scripted_model import Script, plays, says
from nodus_core.testing.scripted_sandbox import Behaviour, exited

from functions.admin.operations import Operations
from tests.unit.api.rest import Rest, manifest

DEAR = Usage(1000, 4000)
"""A call that costs 0.009 USD: less than its reserve, which is some 0.011."""

CALL = Decimal("0.009")
LOOK = says("look", ("run_command", {"command": "true"}), usage=DEAR)
DONE = says("done", usage=DEAR)
ON_DEMAND = {"access": "OnDemand", "name": "claude-sonnet"}


class Money(Rest):
    """Runs of an On Demand agent: `rounds` calls each."""

    def __init__(
        self,
        rounds: int = 1,
        cap: str = "1.00",
        script: Script | None = None,
        behaviour: Behaviour = lambda kind, request: exited(),
    ) -> None:
        super().__init__(script or plays([*[LOOK] * (rounds - 1), DONE]), behaviour)
        self.operator = Operations.over(
            Shelf(self.world.outside, self.world.payloads, self.world.clock), self.world.ids
        )
        self.agent(model=ON_DEMAND, perRunMaxCostUSD=cap)

    def admin(self, operation: str, **fields: Any) -> dict[str, Any]:
        return self.operator.perform({"operation": operation, "organization": "acme", **fields})

    def budget(self, limit: str, name: str = "b") -> None:
        assert self.apply(f"budgets/{name}", manifest("Budget", name, {"limitUSD": limit})).code in (200, 201)

    def status(self, run: str) -> dict[str, Any]:
        return self.get(f"agentruns/{run}").json["status"]

    def words(self, run: str) -> tuple[str, str | None]:
        shown = self.status(run)
        return shown["phase"], shown.get("reason")

    def balance(self, name: str = "b") -> dict[str, str]:
        return self.get(f"budgets/{name}").json["status"]

    @property
    def calls(self) -> int:
        """How many requests the provider got."""
        return len(self.world.models.requests)

    def begin(self, *runs: str) -> None:
        for run in runs:
            assert self.run(run).code == 201
        self.world.settle()

    def check(self) -> None:
        """No account has given more than it has; all that is held is in some run's purse or some sandbox's meter."""
        rows = self.store.rows()
        meters = [
            sandbox.meter
            for key, row in rows.items()
            if key.pk.startswith("sb#") and key.sk == "head" and (sandbox := from_row(Sandbox, row)).meter
        ]
        purses = [
            run.purse
            for key, row in rows.items()
            if key.pk.startswith("run#") and key.sk == "head" and (run := from_row(Run, row)).purse
        ]
        for key, row in rows.items():
            if key.pk.startswith("acct#") and key.sk == "head":
                account = from_row(Account, row)
                assert account.available + account.held + account.spent == account.limit
                assert account.held + account.spent <= account.limit
                holders = (*purses, *meters)
                held = sum((one.held for one in holders if one and account.id in one.payers), Decimal(0))
                assert held == account.held, (
                    f"{account.id}: {account.held} USD are held, runs and sandboxes have {held}"
                )
