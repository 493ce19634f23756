"""Kind `Budget`: one limit for compute and managed inference of a project together (NOD-146, NODQ-108)."""

from typing import Any, Literal

from pydantic import Field

from nodus_core.resources.columns import AGE, NAME, Column, dollars
from nodus_core.resources.fields import Money, Spec, as_texts


class BudgetSpec(Spec):
    """One limit for what a project spends on models of Nodus and on sandboxes together."""

    limit_usd: Money = Field(
        alias="limitUSD",
        description="What models of Nodus and sandboxes of the project may cost together, in US dollars: more than 0, "
        "at most 100,000, six decimals. A changed limit holds at once.",
    )
    period: Literal["Total"] | None = Field(
        default=None, description="`Total`, also when left out: all that was ever spent counts."
    )
    action: Literal["Block"] | None = Field(
        default=None,
        description="`Block`, also when left out: at the limit no model is called and no sandbox started, and runs "
        "wait with BudgetBlocked until there is room.",
    )

    @classmethod
    def as_stored(cls, spec: dict[str, Any]) -> dict[str, Any]:
        return as_texts(spec, "limitUSD")


COLUMNS = (
    NAME,
    Column("Phase", "status.phase", "Whether there is room."),
    Column("Limit", dollars("spec.limitUSD"), "What may be spent in all."),
    Column("Spent", dollars("status.spentUSD"), "What was spent."),
    Column("Reserved", dollars("status.reservedUSD"), "What calls under way may still spend."),
    Column("Remaining", dollars("status.remainingUSD"), "What is left."),
    AGE,
    Column("Models", dollars("status.modelUSD"), "What models have cost.", priority=1),
    Column("Compute", dollars("status.computeUSD"), "What sandboxes have cost.", priority=1),
)
