"""Kind `Endpoint`: a model behind a name, with policies of its own (NOD-097 … NOD-099, NODQ-04)."""

from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from nodus_core.resources.agent import LARGEST_COUNT
from nodus_core.resources.columns import AGE, NAME, Column, dollars
from nodus_core.resources.fields import Money, Name, Spec, Whole, as_texts, misplaced
from nodus_core.resources.inference_source import ModelSpec

MOST_KEYS = 100

NAMED = "endpoint/"
"""Beginning of a model's name that means an Endpoint of the project."""


class EndpointSpec(Spec):
    """A model behind a name, with policies of its own."""

    model: ModelSpec = Field(description="The model behind the name, which is no endpoint itself.")
    api_keys: Annotated[list[Name], Field(min_length=1, max_length=MOST_KEYS)] | None = Field(
        default=None,
        description="Names of the only ApiKeys that may call it, so that no agent can. Left out: all of the project "
        "may, agents too.",
    )
    max_concurrency: Annotated[Whole, Field(ge=1, le=LARGEST_COUNT)] | None = Field(
        default=None, description="Calls that it takes at the same time. Left out: there is no limit."
    )
    max_cost_usd: Money | None = Field(
        default=None,
        alias="maxCostUSD",
        description="What may be spent through it in all, in US dollars: more than 0, at most 100,000, six decimals. "
        "Left out: there is no cap.",
    )

    @model_validator(mode="after")
    def _a_model(self) -> Self:
        if (self.model.name or "").startswith(NAMED):
            raise misplaced("model", "must name a model, not another endpoint")
        return self

    @classmethod
    def as_stored(cls, spec: dict[str, Any]) -> dict[str, Any]:
        return as_texts(spec, "maxCostUSD")


COLUMNS = (
    NAME,
    Column("Access", "spec.model.access", "Where inference comes from."),
    Column("Model", "spec.model.name", "The model behind the name."),
    Column("Concurrency", "spec.maxConcurrency", "Calls at a time.", "integer"),
    Column("Cap", dollars("spec.maxCostUSD"), "What may be spent through it."),
    AGE,
)
