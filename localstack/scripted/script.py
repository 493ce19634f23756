"""A script as written in YAML, read into frozen objects; each refusal names the script and the field.

`README.md` of this folder describes the format for those who write scripts.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from localstack.scripted.heard import Heard
from localstack.scripted.template import BadTemplate, check

ESTIMATED: Final = "estimated"
"""Usage that is counted from the texts."""


class BadScript(Exception):
    """A script file cannot be played: the message names the script, the field, and what is wrong."""


@dataclass(frozen=True)
class Fault:
    """What goes wrong on the wire. `times` limits how often (counted in the server); None is always.

    `headers` stand in the answer beside, or in place of, those that it has by itself.
    """

    status: int | None = None
    retry_after: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    location: str | None = None
    body: str | None = None
    delay_s: float = 0
    hang: bool = False
    drop: bool = False
    cut_after_bytes: int | None = None
    bytes_per_s: int | None = None
    times: int | None = None


@dataclass(frozen=True)
class Call:
    """A tool call: `arguments` is a mapping, or a text that is sent as it is."""

    name: str
    arguments: Mapping[str, Any] | str
    id: str | None = None


@dataclass(frozen=True)
class Thinking:
    """A thinking block, or with `redacted` a redacted one."""

    text: str = ""
    signature: str = ""
    redacted: str | None = None


@dataclass(frozen=True)
class Reply:
    """One reply. `usage` is (input, output) tokens, None for a reply without usage, or ESTIMATED.

    `body` is a whole response body that is sent as it is, in place of everything else but the faults.
    `repeat` plays the reply so many times in a row.
    """

    text: str = ""
    thinking: tuple[Thinking, ...] = ()
    calls: tuple[Call, ...] = ()
    usage: tuple[int, int] | str | None = ESTIMATED
    stop: str | None = None
    faults: tuple[Fault, ...] = ()
    body: str | None = None
    repeat: int = 1


@dataclass(frozen=True)
class Match:
    """When a script is played: every regular expression that is given must be found."""

    user: re.Pattern[str] | None = None
    prompt: re.Pattern[str] | None = None
    model: re.Pattern[str] | None = None
    system: re.Pattern[str] | None = None

    def groups(self, heard: Heard) -> Mapping[int | str, str] | None:
        """The groups found in the text that `user`, else `prompt`, matched; None when the script is not meant.

        In a routing call the prompt to be routed is what the person wrote; its other texts say nothing.
        """
        routing = heard.families is not None
        subjects = [(self.user, heard.asked), (self.prompt, heard.asked if routing else heard.prompt)]
        if not routing:
            subjects += [(self.model, heard.model), (self.system, heard.system)]
        groups: dict[int | str, str] = {}
        for pattern, subject in subjects:
            found = pattern.search(subject) if pattern else None
            if pattern and not found:
                return None
            if found and not groups:
                groups = {0: found.group(), **{n: text or "" for n, text in enumerate(found.groups(), 1)}}
                groups.update({name: text or "" for name, text in found.groupdict().items()})
        return groups


@dataclass(frozen=True)
class Script:
    """A prepared conversation. `route` is the router's answer for its prompt, None for the default."""

    name: str
    match: Match
    replies: tuple[Reply, ...]
    route: Reply | None = None

    def reply(self, turn: int) -> tuple[int, Reply] | None:
        """The reply that comes after `turn` assistant messages, with its place; None past the last one."""
        for place, reply in enumerate(self.replies):
            if turn < reply.repeat:
                return place, reply
            turn -= reply.repeat
        return None


def read_scripts(text: str, file: str) -> tuple[Script, ...]:
    """The scripts of one YAML file: one mapping, or several under `scripts`.

    Raises: BadScript.
    """
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise BadScript(f"{file}: is not YAML: {error}") from error
    listed = data.get("scripts") if isinstance(data, Mapping) and "scripts" in data else [data]
    if not isinstance(listed, list):
        raise BadScript(f"{file}: `scripts` must be a list")
    return tuple(_script(item, f"{file}[{n}]") for n, item in enumerate(listed))


def _script(data: object, where: str) -> Script:
    fields = _fields(data, where, {"name", "match", "route", "replies"})
    name = str(fields.get("name") or where)
    replies = fields.get("replies", [])
    if not isinstance(replies, list) or not (replies or "route" in fields):
        raise BadScript(f"{name}: `replies` must be a list with at least one reply")
    return Script(
        name=name,
        match=_match(fields.get("match"), f"{name}.match"),
        replies=tuple(_reply(item, f"{name}.replies[{n}]") for n, item in enumerate(replies)),
        route=_route(fields["route"], f"{name}.route") if "route" in fields else None,
    )


def _match(data: object, where: str) -> Match:
    given = {"user": data} if isinstance(data, str) else data
    patterns: dict[str, re.Pattern[str]] = {}
    for key, text in _fields(given, where, {"user", "prompt", "model", "system"}).items():
        try:
            patterns[key] = re.compile(str(text), re.MULTILINE)
        except re.error as error:
            raise BadScript(f"{where}.{key}: {text!r} is not a regular expression: {error}") from error
    if not patterns:
        raise BadScript(f"{where}: give a regular expression, or `user`, `prompt`, `model`, `system`")
    return Match(**patterns)


def _route(data: object, where: str) -> Reply:
    if isinstance(data, str):
        return Reply(text=data)
    return _reply(data, where)


def _reply(data: object, where: str) -> Reply:
    known = {"text", "thinking", "calls", "usage", "stop", "fault", "body", "repeat"}
    fields = _fields(data, where, known)
    try:
        check([fields.get("text"), fields.get("calls")])
    except BadTemplate as error:
        raise BadScript(f"{where}: {error}") from error
    return Reply(
        text=str(fields.get("text", "")),
        thinking=tuple(_thinking(item, f"{where}.thinking") for item in _list(fields.get("thinking"))),
        calls=tuple(_call(item, f"{where}.calls") for item in _list(fields.get("calls"))),
        usage=_usage(fields, f"{where}.usage"),
        stop=None if fields.get("stop") is None else str(fields["stop"]),
        faults=tuple(_fault(item, f"{where}.fault") for item in _list(fields.get("fault"))),
        body=None if fields.get("body") is None else str(fields["body"]),
        repeat=_number(fields.get("repeat", 1), f"{where}.repeat", int),
    )


def _thinking(data: object, where: str) -> Thinking:
    if isinstance(data, str):
        return Thinking(text=data, signature="scripted")
    fields = _fields(data, where, {"text", "signature", "redacted"})
    redacted = fields.get("redacted")
    return Thinking(
        text=str(fields.get("text", "")),
        signature=str(fields.get("signature", "scripted")),
        redacted=None if redacted is None else str(redacted),
    )


def _call(data: object, where: str) -> Call:
    fields = _fields(data, where, {"name", "arguments", "id"})
    arguments = fields.get("arguments", {})
    if not isinstance(fields.get("name"), str) or not isinstance(arguments, Mapping | str):
        raise BadScript(f"{where}: a call is `name: TOOL` and `arguments:` as a mapping, or as a text")
    return Call(fields["name"], arguments, None if fields.get("id") is None else str(fields["id"]))


def _usage(fields: Mapping[str, Any], where: str) -> tuple[int, int] | str | None:
    if "usage" not in fields:
        return ESTIMATED
    if fields["usage"] is None:
        return None
    usage = _fields(fields["usage"], where, {"input", "output"})
    return _number(usage.get("input", 0), where, int), _number(usage.get("output", 0), where, int)


def _fault(data: object, where: str) -> Fault:
    known = set(Fault.__dataclass_fields__)
    fields = dict(_fields(data, where, known))
    for key in ("status", "cut_after_bytes", "bytes_per_s", "times"):
        if fields.get(key) is not None:
            fields[key] = _number(fields[key], f"{where}.{key}", int)
    for key in ("retry_after", "location", "body"):
        if fields.get(key) is not None:
            fields[key] = str(fields[key])
    if not isinstance(fields.get("headers", {}), Mapping):
        raise BadScript(f"{where}.headers: must be a mapping from names to values")
    fields["headers"] = {str(name): str(value) for name, value in fields.get("headers", {}).items()}
    fields["delay_s"] = _number(fields.get("delay_s", 0), f"{where}.delay_s", float)
    return Fault(**fields)


def _fields(data: object, where: str, known: set[str]) -> Mapping[str, Any]:
    if not isinstance(data, Mapping):
        raise BadScript(f"{where}: must be a mapping with some of: {', '.join(sorted(known))}")
    unknown = set(data) - known
    if unknown:
        raise BadScript(f"{where}: unknown {sorted(map(str, unknown))}; known are {', '.join(sorted(known))}")
    return data


def _list(data: object) -> list[Any]:
    if data is None:
        return []
    return data if isinstance(data, list) else [data]


def _number(data: object, where: str, kind: type[int] | type[float]) -> Any:
    if isinstance(data, bool) or not isinstance(data, int | kind) or data < 0:
        raise BadScript(f"{where}: must be a number that is not negative, not {data!r}")
    return kind(data)
