"""Kind `Budget`: one limit for compute and managed inference of a project together (NOD-146, NODQ-108)."""

from typing import Any, Literal

from pydantic import Field

from nodus_core.resources.columns import AGE, NAME, Column, dollars
from nodus_core.resources.fields import Money, Spec, as_texts


class BudgetSpec(Spec):
    """`spec` of a Budget as written. What it counts is all that was ever spent; at the limit nothing new begins."""

    limit_usd: Money = Field(alias="limitUSD")
    period: Literal["Total"] | None = None
    action: Literal["Block"] | None = None

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
