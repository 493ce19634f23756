"""Which reply a request gets: a script's, the default router's, or the honest answer."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from localstack.scripted.heard import Heard
from localstack.scripted.library import Library
from localstack.scripted.script import Call, Reply, Script
from localstack.scripted.template import Context, render

SHORT_PROMPT = 400
"""Characters up to which the default router calls a prompt simple."""

_DEMANDING = ("prove", "design", "refactor", "architecture", "research", "optimize", "debug", "subagent")


@dataclass(frozen=True)
class Part:
    """What is played: the reply with its templates filled in, and the `source` that faults are counted by."""

    reply: Reply
    source: str


def choose(library: Library, heard: Heard) -> Part:
    """The part that answers this request; the same request always gets the same one."""
    found = library.find(heard)
    if heard.families is not None:
        return _route(found[0] if found else None, heard)
    if found is None:
        return Part(Reply(text=honest(library, heard)), "no script")
    script, groups = found
    placed = script.reply(heard.turns)
    if placed is None:
        text = f"(scripted) The script {script.name!r} has no reply number {heard.turns + 1}: its script is over."
        return Part(Reply(text=text), f"{script.name} (over)")
    place, reply = placed
    return Part(_filled(reply, heard, groups), f"{script.name}[{place}]")


def honest(library: Library, heard: Heard) -> str:
    """What the scripted model says to a prompt that it has no script for."""
    folders = ", ".join(str(folder) for folder in library.folders) or "(none: start it with --scripts FOLDER)"
    key = "ANTHROPIC_API_KEY" if heard.wire == "anthropic" else "OPENAI_API_KEY"
    lines = [
        "I am the scripted model of the local cloud: I play prepared replies, I do not think, "
        "and no script matches this prompt.",
        f"To give it one, put a YAML file into {folders}; examples/scripts/hello.yaml shows how. "
        "Files are read again when they change.",
        f"To talk to a real model instead, set {key} and start the local cloud again (make up).",
    ]
    lines += [f"A script file could not be read: {problem}" for problem in library.problems]
    return "\n".join(lines)


def default_family(prompt: str, families: tuple[str, ...]) -> str:
    """A sensible family for a prompt, the same every time: the longer and harder, the higher."""
    words = prompt.lower()
    hard = sum(word in words for word in _DEMANDING)
    level = (len(prompt) > SHORT_PROMPT) + (len(prompt) > 10 * SHORT_PROMPT) + min(hard, 2)
    return families[min(level, len(families) - 1)]


def _route(script: Script | None, heard: Heard) -> Part:
    if script is not None and script.route is not None:
        return Part(script.route, f"{script.name}.route")
    families = heard.families or ("sonnet",)
    return Part(Reply(text=default_family(heard.asked, families)), "default route")


def _filled(reply: Reply, heard: Heard, groups: Mapping[int | str, str]) -> Reply:
    context = Context(heard.user, heard.model, heard.turns, heard.results, groups)
    return replace(
        reply,
        text=str(render(reply.text, context)),
        calls=tuple(replace(call, arguments=render(call.arguments, context)) for call in reply.calls),
    )


def call_id(heard: Heard, call: Call, place: int, prefix: str) -> str:
    """The script's id, or one made from the request, so that a call that is sent again has the same ids."""
    if call.id is not None:
        return call.id
    return f"{prefix}{hashlib.sha256(f'{heard.digest}/{place}'.encode()).hexdigest()[:20]}"


def arguments_text(call: Call) -> str:
    """The arguments as the text of a JSON object, or as the script says."""
    return call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
