"""Where a model call goes and what it costs there."""

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Literal

Wire = Literal["anthropic", "openai"]
"""`anthropic` is the Messages format, `openai` that of Chat Completions."""


LimitField = Literal["max_tokens", "max_completion_tokens"]

SCRIPTED_PREFIX = "scripted/"


@dataclass(frozen=True)
class Prices:
    """USD per million tokens; None is an unknown price and makes every cost that needs it None.

    A cache price that is left out counts as the input price.
    """

    input: Decimal | None = None
    output: Decimal | None = None
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None


@dataclass(frozen=True)
class LongPrompt:
    """Prices of a whole call, output included, whose prompt has more than `above` tokens."""

    above: int
    prices: Prices


@dataclass(frozen=True)
class OwnKey:
    """A call with the user's own key: the project's Secret that holds it, and in which field.

    `field` None: the Secret's only one, or the one that the wire's name stands for. `base_url` None: the
    provider's public address.
    """

    secret: str
    field: str | None = None
    base_url: str | None = None


@dataclass(frozen=True)
class Target:
    """One model at one endpoint.

    `model` is the id that the provider knows, `name` the one that people chose and see (`shown_name` adds
    the mark of scripted models). `family` bounds who may read thinking blocks again (FLD-02). `endpoint`
    names the credential. `context_window` and `max_output` are in tokens, None when unknown.
    `limit_field` is how the `openai` wire calls the output limit. With `own_key` the user's account pays, and
    a call is never made twice for one that may have been made.
    """

    wire: Wire
    model: str
    family: str
    endpoint: str
    name: str
    prices: Prices = field(default_factory=Prices)
    long_prompt: LongPrompt | None = None
    context_window: int | None = None
    max_output: int | None = None
    scripted: bool = False
    limit_field: LimitField = "max_tokens"
    own_key: OwnKey | None = None

    @property
    def shown_name(self) -> str:
        """The model's name as people see it: a scripted one never looks like a real one."""
        return f"{SCRIPTED_PREFIX}{self.name}" if self.scripted else self.name

    @property
    def provider(self) -> str:
        """Who made a reply, for FLD-02: a script's thinking is not the real provider's."""
        return f"{SCRIPTED_PREFIX}{self.endpoint}" if self.scripted else self.endpoint
