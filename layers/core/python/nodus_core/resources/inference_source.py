"""`spec.model`: where inference comes from, and which fields go with which source (NODQ-90, NODQ-27)."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from nodus_core.resources.addresses import LONGEST_ADDRESS, why_not_public
from nodus_core.resources.checks import check
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


@check(enum=[*ACCESSES])
def _access(value: str) -> str:
    if value == HOSTED:
        raise PydanticCustomError(
            "coming_soon", "a hosted model of your own is coming soon; use Nodus, OnDemand or BYOK (NODQ-29)"
        )
    if value not in ACCESSES:
        raise problem(f"must be one of {', '.join(ACCESSES)}")
    return value


@check(pattern="^[Hh][Tt][Tt][Pp][Ss]://", maxLength=LONGEST_ADDRESS, example="https://api.example.com/v1")
def _base_url(value: str) -> str:
    why = why_not_public(value)
    if why:
        raise problem(why)
    return value


@check(uniqueItems=True)
def _distinct(value: list[Family]) -> list[Family]:
    if len(set(value)) < len(value):
        raise problem("names a family twice")
    return value


class ModelSpec(Spec):
    """The inference source of an agent or of one run."""

    access: Annotated[Str, _access] = Field(
        description="`Nodus`: managed Claude, which chooses a model for each prompt. `OnDemand`: one model of the "
        "catalogue. `BYOK`: a provider of one's own, paid there, with a key of one's own. `Hosted` is refused "
        "with ComingSoon."
    )
    name: ModelName | None = Field(
        default=None,
        description="Id of the model: one of the catalogue with `OnDemand`, the provider's own with `BYOK`, which "
        "both need it; refused with `Nodus`. `endpoint/NAME` means an Endpoint of the project, which runs cannot "
        "use yet.",
    )
    families: Annotated[list[Family], Field(min_length=1), _distinct] | None = Field(
        default=None,
        description="Families of Claude that may be chosen, each once. Left out: all. Only with `Nodus`.",
    )
    max_tokens: Annotated[Whole, Field(ge=1, le=MOST_TOKENS)] | None = Field(
        default=None, description="Tokens that one reply of the model may have. Left out: 4096."
    )
    api_key_secret: Name | None = Field(
        default=None,
        description="Name of the project's Secret that holds the provider's key. Required with `BYOK`, refused "
        "without.",
    )
    api_key_field: SecretField | None = Field(
        default=None,
        description="Field of that Secret that is the key. Left out: its only field, else ANTHROPIC_API_KEY or "
        "OPENAI_API_KEY as the protocol is. Only with `BYOK`.",
    )
    protocol: Literal["Anthropic", "OpenAI"] | None = Field(
        default=None,
        description="Format of the provider's API. Left out: `Anthropic`. Only with `BYOK`.",
    )
    base_url: Annotated[Str, _base_url] | None = Field(
        default=None,
        alias="baseURL",
        description="Address of a provider that speaks the protocol: https, public, without a query. Left out: that "
        "of Anthropic or OpenAI. Only with `BYOK`.",
    )

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
