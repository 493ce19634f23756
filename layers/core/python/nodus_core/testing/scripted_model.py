"""A model that plays prepared replies, and objects to calls that nobody prepared."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from nodus_core.conversations.context import ModelChoice
from nodus_core.inference.exchange import (
    AssistantMessage,
    ModelReply,
    ModelRequest,
    StopReason,
    ToolCall,
    Usage,
)
from nodus_core.inference.own_keys import own_target
from nodus_core.inference.target import Prices, Target
from nodus_core.resources.families import FAMILIES, Family

Step = ModelReply | BaseException
"""What one call gives: a reply, or an error that is raised."""

Script = Callable[[ModelRequest, int], Step]
"""The request and the number of assistant messages it already holds since the last prompt."""


def target(family: str) -> Target:
    """A target with round prices: one USD per million tokens in, two out."""
    prices = Prices(input=Decimal(1), output=Decimal(2))
    return Target("anthropic", f"claude-{family}", family, "anthropic", f"claude-{family}", prices)


def says(
    text: str,
    *calls: tuple[str, Mapping[str, object]],
    stop: StopReason | None = None,
    usage: Usage | None = None,
) -> ModelReply:
    """A reply with a text and calls `(tool, arguments)`."""
    made = tuple(
        ToolCall(f"toolu_{index}_{abs(hash(text)) % 10_000}", name, json.dumps(dict(arguments)))
        for index, (name, arguments) in enumerate(calls)
    )
    raw = json.dumps([{"type": "text", "text": text}])
    message = AssistantMessage("anthropic", "claude", "sonnet", raw, text, made, "anthropic")
    return ModelReply(message, stop or ("tools" if made else "end"), usage or Usage(100, 10))


@dataclass
class ScriptedModels:
    """`Models` over a script. `requests` holds every call that was made, routing calls apart, and `keys` the user's
    own key of each."""

    script: Script
    family: str = "haiku"

    def __post_init__(self) -> None:
        self.requests: list[ModelRequest] = []
        self.routings: list[ModelRequest] = []
        self.keys: list[str | None] = []

    def target(self, choice: ModelChoice, family: str | None) -> Target:
        if choice.own_key is not None:
            return own_target(choice.name or "", choice.wire, choice.own_key)
        return target(family or "sonnet")

    def families(self, choice: ModelChoice) -> tuple[Family, ...]:
        return tuple(family for family in FAMILIES if not choice.families or family in choice.families)

    def router(self) -> Target:
        return target("router")

    def gate(self, target: Target) -> str:
        return target.endpoint

    def call(self, request: ModelRequest, key: str | None = None) -> ModelReply:
        if request.target.family == "router":
            self.routings.append(request)
            return says(self.family)
        self.requests.append(request)
        self.keys.append(key)
        step = self.script(request, rounds_so_far(request))
        if isinstance(step, BaseException):
            raise step
        return step


def rounds_so_far(request: ModelRequest) -> int:
    """Assistant messages since the last prompt."""
    count = 0
    for message in reversed(request.messages):
        if isinstance(message, AssistantMessage):
            count += 1
        elif type(message).__name__ == "UserMessage":
            break
    return count


def plays(steps: Sequence[Step]) -> Script:
    """The n-th step for the n-th round of a turn. Raises `AssertionError` beyond the last."""

    def script(_: ModelRequest, number: int) -> Step:
        if number >= len(steps):
            raise AssertionError(f"a model call that nobody prepared: round {number + 1}")
        return steps[number]

    return script
