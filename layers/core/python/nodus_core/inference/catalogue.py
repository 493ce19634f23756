"""The operator's catalogue of models: the file's shape, its checks, and which target a `spec.model` means.

The file is `catalogue.yaml` beside this module, or the operator's own text.
"""

from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib.resources import files
from typing import Annotated

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from nodus_core.inference.errors import ModelNotOffered
from nodus_core.inference.target import LimitField, LongPrompt, Prices, Target, Wire
from nodus_core.resources.families import FAMILIES, Family

_ENDPOINT_PREFIX = "endpoint/"


class BadCatalogue(Exception):
    """The operator's file cannot be used: the message names the file, each field, and what is wrong there."""


def _exact(value: object) -> object:
    if isinstance(value, float):
        raise ValueError('write the price in quotes, for example "0.10", so that it stays exact')
    return value


Price = Annotated[Decimal | None, BeforeValidator(_exact), Field(ge=0, max_digits=18, decimal_places=9)]


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel)


class _Prices(_Entry):
    input: Price = None
    output: Price = None
    cache_read: Price = None
    cache_write: Price = None

    def prices(self) -> Prices:
        return Prices(self.input, self.output, self.cache_read, self.cache_write)


class _LongPrompt(_Entry):
    above: int = Field(gt=0)
    prices: _Prices


class _Served(_Entry):
    endpoint: str
    context_window: int | None = Field(default=None, gt=0)
    max_output: int | None = Field(default=None, gt=0)
    output_limit_field: LimitField = "max_tokens"
    prices: _Prices = _Prices()
    long_prompt: _LongPrompt | None = None


class _FamilyEntry(_Served):
    model: str = Field(min_length=1)


class _ModelEntry(_Served):
    name: str | None = None
    aliases: tuple[str, ...] = ()
    model: str | None = Field(default=None, min_length=1)
    family: str | None = None
    tools: bool = True


class _Endpoint(_Entry):
    wire: Wire


class _File(_Entry):
    endpoints: dict[str, _Endpoint]
    router: Family | None = None
    families: dict[Family, _FamilyEntry] = Field(default_factory=dict)
    models: dict[str, _ModelEntry] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _names_what_is_there(self) -> "_File":
        for section, entries in (("families", self.families), ("models", self.models)):
            for name, entry in entries.items():
                if entry.endpoint not in self.endpoints:
                    raise ValueError(
                        f"{section}.{name}: endpoint {entry.endpoint!r} is not among `endpoints`"
                    )
        if self.families and self.router not in self.families:
            raise ValueError(f"router: {self.router!r} is not among `families`")
        taken: dict[str, str] = {}
        for model, entry in self.models.items():
            for word in (model, *entry.aliases):
                if taken.setdefault(word, model) != model:
                    raise ValueError(f"models.{model}: {word!r} already means {taken[word]}")
        return self


@dataclass(frozen=True)
class Offer:
    """A model of the On Demand catalogue as people see it (NOD-106)."""

    id: str
    name: str
    aliases: tuple[str, ...]
    tools: bool
    prices: Prices
    context_window: int | None
    scripted: bool

    def matches(self, text: str) -> bool:
        """Whether the text is part of the name, the id or an alias (NOD-105)."""
        return any(text.lower() in word.lower() for word in (self.id, self.name, *self.aliases))


class Catalogue:
    """What can be called. `scripted` names the endpoints that the scripted model server answers for."""

    def __init__(self, file: _File, scripted: Collection[str] = ()) -> None:
        self._file = file
        self._scripted = frozenset(scripted)
        self._ids = {word: model for model, entry in file.models.items() for word in (model, *entry.aliases)}

    def offers(self) -> tuple[Offer, ...]:
        """The On Demand models that an agent can use: those that can call tools (NOD-100, NOD-106)."""
        return tuple(
            Offer(
                id=model,
                name=entry.name or model,
                aliases=entry.aliases,
                tools=entry.tools,
                prices=entry.prices.prices(),
                context_window=entry.context_window,
                scripted=entry.endpoint in self._scripted,
            )
            for model, entry in self._file.models.items()
            if entry.tools
        )

    def on_demand(self, name: str) -> Target:
        """The target of `access: OnDemand` with this id, alias or `endpoint/NAME`.

        Raises: ModelNotOffered (NOD-096, NOD-097, NOD-100).
        """
        if name.startswith(_ENDPOINT_PREFIX):
            endpoint = name.removeprefix(_ENDPOINT_PREFIX)
            raise ModelNotOffered(
                f"this project has no endpoint {endpoint!r}: use the id of a catalogue model",
                "spec.model.name",
            )
        model = self._ids.get(name)
        if model is None:
            offered = ", ".join(offer.id for offer in self.offers()) or "none"
            raise ModelNotOffered(
                f"the catalogue has no model {name!r}; it offers: {offered}", "spec.model.name"
            )
        entry = self._file.models[model]
        if not entry.tools:
            raise ModelNotOffered(
                f"model {model!r} does not support tool calling, which agents need: choose another",
                "spec.model.name",
            )
        return self._target(entry, entry.model or model, entry.family or model, model)

    def families(self, allowed: Collection[str] = ()) -> tuple[Family, ...]:
        """The families that the router may choose from, easiest first; `allowed` empty means all (NOD-012).

        Raises: ModelNotOffered when none of them is configured (NODQ-91).
        """
        wanted = list(allowed) or list(FAMILIES)
        found: tuple[Family, ...] = tuple(
            family for family in FAMILIES if family in self._file.families and wanted.count(family)
        )
        if not found:
            asked = ", ".join(allowed) or "any family"
            raise ModelNotOffered(f"managed Claude serves none of: {asked}", "spec.model.families")
        return found

    def managed(self, family: str) -> Target:
        """The target of a family. Raises: ModelNotOffered when it is not configured."""
        entry = next((entry for name, entry in self._file.families.items() if name == family), None)
        if entry is None:
            raise ModelNotOffered(
                f"managed Claude does not serve the family {family!r}", "spec.model.families"
            )
        return self._target(entry, entry.model, family, entry.model)

    def router(self) -> Target:
        """The target of routing calls. Raises: ModelNotOffered when no family is configured."""
        if self._file.router is None:
            raise ModelNotOffered("this installation does not serve managed Claude", "spec.model.access")
        return self.managed(self._file.router)

    def resolve(self, access: str, *, name: str | None = None, family: str | None = None) -> Target:
        """The target of a `spec.model`: OnDemand by `name`, Nodus by the `family` that the router chose.

        Own keys (BYOK) are no part of the catalogue. Raises: ModelNotOffered, naming the field.
        """
        match access:
            case "Nodus":
                return self.managed(family or "")
            case "OnDemand":
                return self.on_demand(name or "")
            case _:
                raise ModelNotOffered(
                    f"the catalogue serves Nodus and OnDemand, not {access!r}", "spec.model.access"
                )

    def _target(self, entry: _Served, model: str, family: str, name: str) -> Target:
        long_prompt = entry.long_prompt
        return Target(
            wire=self._file.endpoints[entry.endpoint].wire,
            model=model,
            family=family,
            endpoint=entry.endpoint,
            name=name,
            prices=entry.prices.prices(),
            long_prompt=LongPrompt(long_prompt.above, long_prompt.prices.prices()) if long_prompt else None,
            context_window=entry.context_window,
            max_output=entry.max_output,
            scripted=entry.endpoint in self._scripted,
            limit_field=entry.output_limit_field,
        )


def load_catalogue(text: str, source: str, scripted: Collection[str] = ()) -> Catalogue:
    """Reads a catalogue file's text; `source` names it in errors.

    Raises: BadCatalogue, with every field that is wrong.
    """
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise BadCatalogue(f"{source} is not YAML: {error}") from error
    try:
        return Catalogue(_File.model_validate(data), scripted)
    except ValidationError as error:
        raise BadCatalogue(_told(source, error)) from error


@cache
def packaged_text() -> str:
    """The text of the file that comes with this package."""
    return files("nodus_core.inference").joinpath("catalogue.yaml").read_text(encoding="utf-8")


def packaged_catalogue(scripted: Collection[str] = ()) -> Catalogue:
    """The catalogue that comes with this package; `scripted` as in `Credentials.scripted`."""
    return load_catalogue(packaged_text(), "catalogue.yaml", scripted)


def _told(source: str, error: ValidationError) -> str:
    lines = [
        f"  {'.'.join(str(part) for part in problem['loc']) or '(file)'}: {problem['msg']}"
        for problem in error.errors(include_url=False)
    ]
    return "\n".join([f"{source} is not a catalogue of models:", *lines])
