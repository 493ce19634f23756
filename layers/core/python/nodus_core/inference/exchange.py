"""A conversation with a model, independent of the wire format: what the line worker holds and stores.

Every message has `to_record()`, a JSON-ready dict; `message_from_record` reads it back.
"""

import json
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from nodus_core.inference.target import Target, Wire

DEFAULT_MAX_TOKENS = 4096
"""Output tokens of a call whose agent names none (NODQ-89)."""

StopReason = Literal["end", "tools", "cut", "refused"]
"""`cut`: ended by the output limit, runs nothing (FLD-03). `refused`: the provider's safety stopped it."""

Record = dict[str, Any]


class Part:
    """What is encoded for a wire again and again: it holds what was made of it (`wires.memo`) for as long as it lives.

    To look it up by the part itself would be to hash a whole message each time.
    """

    @cached_property
    def made(self) -> dict[Hashable, Any]:
        return {}


@dataclass(frozen=True)
class ToolSpec:
    """A tool as the model sees it. `schema` is the JSON schema of its arguments object."""

    name: str
    description: str
    schema: dict[str, Any]


@dataclass(frozen=True)
class ToolCall:
    """A call that the model asked for.

    `id` is never empty and unique in the conversation; `arguments` is always the text of a JSON object.
    `error` says why the call cannot run: it is not run, and the text is its result for the model.
    """

    id: str
    name: str
    arguments: str
    error: str | None = None

    def to_record(self) -> Record:
        record: Record = {"id": self.id, "name": self.name, "arguments": self.arguments}
        return record if self.error is None else {**record, "error": self.error}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "ToolCall":
        return cls(record["id"], record["name"], record["arguments"], record.get("error"))


@dataclass(frozen=True)
class UserMessage(Part):
    """What a person, or a parent, says."""

    text: str

    def to_record(self) -> Record:
        return {"role": "user", "text": self.text}


@dataclass(frozen=True)
class AssistantMessage(Part):
    """A reply of a model.

    `raw` is the JSON text that the provider gave, byte for byte: the content array on the `anthropic` wire,
    the message object on the `openai` wire. It goes back unchanged to the same wire, family and `provider`.
    `text` is what people read: no thinking, no signatures. `calls` stand in the order of their declaration.
    """

    wire: Wire
    model: str
    family: str
    raw: str
    text: str
    calls: tuple[ToolCall, ...] = ()
    provider: str = ""

    def to_record(self) -> Record:
        return {
            "role": "assistant",
            "wire": self.wire,
            "model": self.model,
            "family": self.family,
            "provider": self.provider,
            "raw": self.raw,
            "text": self.text,
            "calls": [call.to_record() for call in self.calls],
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "AssistantMessage":
        return cls(
            wire=record["wire"],
            model=record["model"],
            family=record["family"],
            provider=record["provider"],
            raw=record["raw"],
            text=record["text"],
            calls=tuple(ToolCall.from_record(call) for call in record["calls"]),
        )


def spoken(target: Target, text: str) -> AssistantMessage:
    """A reply that holds a text and nothing else, as the target's wire would give it."""
    content: object = [{"type": "text", "text": text}]
    if target.wire == "openai":
        content = {"role": "assistant", "content": text}
    raw = json.dumps(content, ensure_ascii=False)
    return AssistantMessage(target.wire, target.model, target.family, raw, text, (), target.provider)


@dataclass(frozen=True)
class ToolResult:
    """What one call gave. `is_error` tells the model that the tool did not do what was asked."""

    call_id: str
    text: str
    is_error: bool = False

    def to_record(self) -> Record:
        return {"call_id": self.call_id, "text": self.text, "is_error": self.is_error}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "ToolResult":
        return cls(record["call_id"], record["text"], record["is_error"])


@dataclass(frozen=True)
class ToolResults(Part):
    """The results of the calls of the assistant message before it, in any order."""

    results: tuple[ToolResult, ...]

    def to_record(self) -> Record:
        return {"role": "tools", "results": [result.to_record() for result in self.results]}


Message = UserMessage | AssistantMessage | ToolResults


def message_from_record(record: Mapping[str, Any]) -> Message:
    """The message that `to_record` made this record of.

    Raises: ValueError for an unknown role, KeyError for a missing field.
    """
    match record["role"]:
        case "user":
            return UserMessage(record["text"])
        case "assistant":
            return AssistantMessage.from_record(record)
        case "tools":
            return ToolResults(tuple(ToolResult.from_record(result) for result in record["results"]))
        case role:
            raise ValueError(f"message record has role {role!r}; known are user, assistant, tools")


@dataclass(frozen=True, eq=False)
class ModelRequest(Part):
    """One call. Each is itself alone: to compare two would be to compare two whole conversations.

    `max_tokens` bounds the output tokens. `id_prefix` makes the ids of calls that come without a usable one:
    choose it from the round's position, so that a replay gives the same ids (FLD-01).
    """

    target: Target
    system: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    max_tokens: int = DEFAULT_MAX_TOKENS
    id_prefix: str = "call_"

    @property
    def output_limit(self) -> int:
        """`max_tokens`, or what the model can give when that is less."""
        return min(self.max_tokens, self.target.max_output or self.max_tokens)


@dataclass(frozen=True)
class Usage:
    """Tokens that the provider counted. `input_tokens` excludes those read from or written to a cache."""

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    @property
    def prompt_tokens(self) -> int:
        """All input tokens, cached or not; what people see as `inputTokens` (NOD-063)."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens

    def to_record(self) -> Record:
        return {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cache_read_tokens": self.cache_read_tokens,
            "cache_write_tokens": self.cache_write_tokens,
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "Usage":
        return cls(
            record["input_tokens"],
            record["output_tokens"],
            record["cache_read_tokens"],
            record["cache_write_tokens"],
        )


@dataclass(frozen=True)
class ModelReply:
    """What came back. `usage` is None when the provider did not count."""

    message: AssistantMessage
    stop: StopReason
    usage: Usage | None
