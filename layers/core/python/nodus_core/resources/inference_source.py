"""`spec.model`: where inference comes from, and which fields go with which source (NODQ-90, NODQ-27)."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from nodus_core.resources.addresses import why_not_public
from nodus_core.resources.families import Family
from nodus_core.resources.fields import ModelName, Name, SecretField, Spec, Str, Whole, misplaced, problem

ACCESSES = ("Nodus", "OnDemand", "BYOK")
HOSTED = "Hosted"
MOST_TOKENS = 1_000_000

ALLOWED = {
    "Nodus": frozenset({"families"}),
    "OnDemand": frozenset({"name"}),
    "BYOK": frozenset({"name", "apiKeySecret", "apiKeyField", "protocol", "baseURL"}),
}
REQUIRED = {"Nodus": (), "OnDemand": ("name",), "BYOK": ("name", "apiKeySecret")}


def _access(value: str) -> str:
    if value == HOSTED:
        raise PydanticCustomError(
            "coming_soon", "a hosted model of your own is coming soon; use Nodus, OnDemand or BYOK (NODQ-29)"
        )
    if value not in ACCESSES:
        raise problem(f"must be one of {', '.join(ACCESSES)}")
    return value


def _base_url(value: str) -> str:
    why = why_not_public(value)
    if why:
        raise problem(why)
    return value


def _distinct(value: list[Family]) -> list[Family]:
    if len(set(value)) < len(value):
        raise problem("names a family twice")
    return value


class ModelSpec(Spec):
    """The inference source of an agent or of one run."""

    access: Annotated[Str, AfterValidator(_access)]
    name: ModelName | None = None
    families: Annotated[list[Family], Field(min_length=1), AfterValidator(_distinct)] | None = None
    max_tokens: Annotated[Whole, Field(ge=1, le=MOST_TOKENS)] | None = None
    api_key_secret: Name | None = None
    api_key_field: SecretField | None = None
    protocol: Literal["Anthropic", "OpenAI"] | None = None
    base_url: Annotated[Str, AfterValidator(_base_url)] | None = Field(default=None, alias="baseURL")

    @model_validator(mode="after")
    def _combination(self) -> Self:
        given = self.model_dump(by_alias=True, exclude_none=True).keys() - {"access", "maxTokens"}
        for field in REQUIRED[self.access]:
            if field not in given:
                raise misplaced(field, f"is required with access {self.access}")
        for field in sorted(given - ALLOWED[self.access]):
            fitting = " or ".join(access for access in ACCESSES if field in ALLOWED[access])
            raise misplaced(field, f"goes only with access {fitting}, not with {self.access}")
        return self
