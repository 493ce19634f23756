"""What a request says, whichever wire format it came in.

All that a reply depends on is derived from the request itself, so a call that is sent again gets the same
reply, also from a server that was started anew in between.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Wire = Literal["anthropic", "openai"]

ROUTER_MARK = "Nodus prompt router"
"""Stands in the system prompt of a routing call (`nodus_core.inference.routing` says the same words)."""

_FAMILIES = re.compile(r"^Families: ([a-z, ]+)$", re.MULTILINE)
_ROUTED = re.compile(r"<prompt>\n(.*)\n</prompt>", re.DOTALL)


class Unreadable(Exception):
    """The body is not a request of this wire format."""


@dataclass(frozen=True)
class Result:
    """A tool result that the model is told: `text`, the called tool's `name`, and whether it failed."""

    text: str
    name: str
    is_error: bool


@dataclass
class Heard:
    """A request. `turns` counts the assistant messages since the last user text, `results` the tool results."""

    wire: Wire
    model: str
    system: str = ""
    user: str = ""
    prompt: str = ""
    turns: int = 0
    results: list[Result] = field(default_factory=list)
    max_tokens: int | None = None
    stream: bool = False
    digest: str = ""

    @property
    def families(self) -> tuple[str, ...] | None:
        """The families that a routing call may choose from, easiest first; None for any other call."""
        if ROUTER_MARK not in self.system:
            return None
        found = _FAMILIES.search(self.system)
        return tuple(word.strip() for word in found.group(1).split(",")) if found else ()

    @property
    def asked(self) -> str:
        """What the person wrote: the last user text, or the prompt inside a routing call."""
        routed = _ROUTED.search(self.user) if self.families is not None else None
        return routed.group(1) if routed else self.user


class _Listener:
    """Collects the messages of one request in order."""

    def __init__(self, heard: Heard) -> None:
        self._heard = heard
        self._said: list[str] = []
        self._names: dict[str, str] = {}
        self._assistant_spoke = True

    def user(self, text: str) -> None:
        self._said.append(text)
        if self._assistant_spoke:
            self._heard.user = text
        else:
            self._heard.user += "\n" + text
        self._assistant_spoke = False
        self._heard.turns = 0
        self._heard.results = []

    def assistant(self, text: str) -> None:
        self._said.append(text)
        self._assistant_spoke = True
        self._heard.turns += 1

    def call(self, call_id: str, name: str) -> None:
        self._names[call_id] = name

    def result(self, call_id: str, text: str, is_error: bool) -> None:
        self._said.append(text)
        self._heard.results.append(Result(text, self._names.get(call_id, ""), is_error))

    def finish(self) -> None:
        self._heard.prompt = "\n".join([self._heard.system, *self._said])


def listen(wire: Wire, body: bytes, digest: str) -> Heard:
    """Reads a request body.

    Raises: Unreadable when it is no JSON object with a list of messages.
    """
    try:
        data = json.loads(body)
    except ValueError as error:
        raise Unreadable(f"the body is not JSON: {error}") from error
    if not isinstance(data, dict) or not isinstance(data.get("messages"), list):
        raise Unreadable("the body is not an object with a list `messages`")
    limit = data.get("max_tokens", data.get("max_completion_tokens"))
    heard = Heard(
        wire=wire,
        model=str(data.get("model", "")),
        max_tokens=limit if isinstance(limit, int) else None,
        stream=data.get("stream") is True,
        digest=digest,
    )
    listener = _Listener(heard)
    heard.system = _text(data.get("system"))
    for message in data["messages"]:
        if not isinstance(message, Mapping):
            raise Unreadable("a message is not an object")
        if wire == "anthropic":
            _hear_blocks(listener, message)
        else:
            _hear_chat(heard, listener, message)
    listener.finish()
    return heard


def _hear_blocks(listener: _Listener, message: Mapping[str, Any]) -> None:
    content = message.get("content")
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    if message.get("role") == "assistant":
        listener.assistant(_text(blocks))
        for block in blocks:
            if block.get("type") == "tool_use":
                listener.call(str(block.get("id")), str(block.get("name")))
        return
    for block in blocks:
        if block.get("type") == "tool_result":
            is_error = block.get("is_error") is True
            listener.result(str(block.get("tool_use_id")), _text(block.get("content")), is_error)
    texts = [block for block in blocks if block.get("type") == "text"]
    if texts:
        listener.user(_text(texts))


def _hear_chat(heard: Heard, listener: _Listener, message: Mapping[str, Any]) -> None:
    text = _text(message.get("content"))
    match message.get("role"):
        case "system" | "developer":
            heard.system = "\n".join(filter(None, (heard.system, text)))
        case "assistant":
            listener.assistant(text)
            for call in message.get("tool_calls") or ():
                listener.call(str(call.get("id")), str(call.get("function", {}).get("name")))
        case "tool":
            listener.result(str(message.get("tool_call_id")), text, text.startswith("[error]"))
        case _:
            listener.user(text)


def _text(content: object) -> str:
    """The text of a content field: a string, or a list of blocks of which the text blocks count."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [block.get("text") for block in content if isinstance(block, Mapping)]
    return "\n".join(text for text in texts if isinstance(text, str))
