"""Kind `Budget`: one limit for compute and managed inference of a project together (NOD-146, NODQ-108)."""

from typing import Literal

from pydantic import Field

from nodus_core.resources.fields import Money, Spec


class BudgetSpec(Spec):
    """`spec` of a Budget as written. What it counts is all that was ever spent; at the limit nothing new begins."""

    limit_usd: Money = Field(alias="limitUSD")
    period: Literal["Total"] | None = None
    action: Literal["Block"] | None = None
