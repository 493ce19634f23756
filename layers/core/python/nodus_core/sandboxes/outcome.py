"""What a finished command means for its step: the result that is recorded and what the model is told."""

import json
from dataclasses import dataclass, replace
from typing import Any

from nodus_core.kernel.decide import SANDBOX_GONE
from nodus_core.kernel.states import TaskState
from nodus_core.kernel.text import Stored, cut
from nodus_core.sandboxes.folders import REFUSED, RESTORE

MOST_TEXT_BYTES = 256 * 1024
"""Bytes of a command's output that are believed; an honest daemon sends less (docs/protocols.md §2)."""

MOST_REASON_BYTES = 2048

MOST_WORD_BYTES = 64
"""Bytes of a state or reason that is kept for a row."""

MOST_NUMBER = 2**53
"""Figures beyond this are no figures of a command; a row could not hold the largest of them."""

ARCHIVE_REFUSED = "ArchiveRefused"
"""The word of a folder that was not filled, and would not be by a further try."""

_KILLED = {
    "timeout": "ended after its time-out",
    "killed": "ended on request",
    "oom": "ended: it used more memory than the sandbox has",
}


_ERRORS = {"timeout": "TimedOut", "killed": "Cancelled", "oom": "OutOfMemory"}


@dataclass(frozen=True)
class Outcome:
    """State, text for the model, and the figures of one command. `error` is a stable word.

    A `Stored` text stands in the payload store already.
    """

    state: TaskState
    text: str | Stored
    is_error: bool = False
    error: str | None = None
    exit_code: int | None = None
    raw_bytes: int | None = None
    dropped_bytes: int | None = None


LOST = Outcome(
    TaskState.UNCERTAIN,
    "The sandbox was lost while this command ran. Whether it took effect is not known.",
    is_error=True,
    error="SandboxLost",
)
"""Never run again by itself (NOD-085)."""

WITHDRAWN = Outcome(
    TaskState.FAILED,
    "The sandbox was gone before this could begin: it was not run and had no effect. A new sandbox takes its place. "
    "Files and processes of the old one are gone; look at what is there, and decide anew.",
    is_error=True,
    error=SANDBOX_GONE,
)


def withdrawn(folder: str | None) -> Outcome:
    """The same, where this folder is saved; None: none is."""
    if folder is None:
        return WITHDRAWN
    text = (
        "The sandbox was gone before this could begin: it was not run and had no effect. A new sandbox takes its "
        f"place. The folder {folder} is restored there as it was saved last, if it was; what was changed since, other "
        "files and processes are gone. Look at what is there, and decide anew."
    )
    return replace(WITHDRAWN, text=text)


NEVER_BEGUN = Outcome(
    TaskState.FAILED,
    "What became of this was not known. A person has said that it did not happen and had no effect. Its sandbox is "
    "gone, with its files and processes, so it was not done again. A new sandbox takes its place; look at what is "
    "there, and decide anew.",
    is_error=True,
    error=SANDBOX_GONE,
)
"""A person's word for a command whose sandbox is gone: as one that was withdrawn."""

CANCELED = Outcome(TaskState.CANCELED, "Cancelled before it started.", is_error=True, error="Cancelled")


def told(output: str, exit_code: int | None) -> str:
    """What the model hears of a command whose result a person has given."""
    end = "how it ended is not known" if exit_code is None else f"exit code {exit_code}"
    return f"{_closed(output)}[{end}; what became of this was not known, and a person has looked and said so]"


def outcome(kind: str, result: str) -> Outcome:
    """The outcome of a command from the daemon's JSON. The daemon's word is the agent's word: all is checked."""
    values = _fields(result)
    state = values.get("state")
    if state == "lost":
        return _lost(values)
    if state != "exited":
        reason = _word(values, "reason")
        message = _word(values, "message") or reason or "the sandbox gave no reason"
        error = ARCHIVE_REFUSED if kind == RESTORE and reason in REFUSED else "CommandFailed"
        return Outcome(TaskState.FAILED, f"Not done: {message.rstrip('.')}.", is_error=True, error=error)
    match kind:
        case "exec":
            return _exec(values)
        case "read_file":
            return _read(values)
        case _:
            return Outcome(TaskState.COMPLETED, f"Done. {_number(values, 'size') or 0} bytes.")


def word_of(result: str) -> tuple[str, int | None]:
    """How a command of a person ended, in a word, and its exit code."""
    values = _fields(result)
    state, reason = _word(values, "state"), _word(values, "reason")
    if state == "lost":
        return "Lost", None
    if state != "exited":
        return "Failed", None
    return _ERRORS.get(reason or "", "Exited"), _number(values, "exitCode")


def why_not_run(result: str) -> str | None:
    """Why a command of a person was not run, or nobody saw its end; None for one that ran to an end."""
    values = _fields(result)
    if _word(values, "state") == "exited":
        return None
    return _word(values, "message") or _word(values, "reason")


def figures(result: str) -> str:
    """The daemon's JSON without what the command put out: what `outcome` needs beside the text that it gave."""
    values = _fields(result)
    words = {name: _text(values, name, MOST_WORD_BYTES) for name in ("state", "reason")}
    numbers = {name: _number(values, name) for name in ("exitCode", "rawBytes", "droppedBytes", "size")}
    return json.dumps({name: value for name, value in (words | numbers).items() if value is not None})


def _lost(values: dict[str, Any]) -> Outcome:
    why = _word(values, "message") or _word(values, "reason") or "its daemon does not say why"
    return Outcome(
        TaskState.UNCERTAIN,
        f"Whether this command took effect is not known: {why}.",
        is_error=True,
        error="OutcomeUnknown",
    )


def _exec(values: dict[str, Any]) -> Outcome:
    code, reason = _number(values, "exitCode"), _word(values, "reason")
    output = _text(values, "output") or ""
    end = _end(code, reason, _word(values, "signal"))
    return Outcome(
        TaskState.TIMED_OUT if reason == "timeout" else TaskState.COMPLETED,
        f"{_closed(output)}{end}",
        is_error=bool(reason) or code != 0,
        error=_ERRORS.get(reason) if reason else "Killed" if code is None else None,
        exit_code=code,
        raw_bytes=_number(values, "rawBytes"),
        dropped_bytes=_number(values, "droppedBytes"),
    )


def _closed(output: str) -> str:
    """Output to which a line of ours can be added."""
    return output if not output or output.endswith("\n") else f"{output}\n"


def _end(code: int | None, reason: str | None, signal: str | None) -> str:
    """How a command ended, for the model: one that a signal ended has no exit code."""
    words = [_KILLED.get(reason, reason)] if reason else []
    if code is not None:
        words.append(f"exit code {code}")
    elif not reason:
        words.append(f"ended by {signal or 'a signal'}")
    return f"[{'; '.join(words)}]"


def _read(values: dict[str, Any]) -> Outcome:
    content, size = _text(values, "content") or "", _number(values, "size")
    note = f"\n[the file has {size} bytes; read on with offset]" if values.get("truncated") else ""
    return Outcome(TaskState.COMPLETED, content + note, raw_bytes=size)


def _fields(result: str) -> dict[str, Any]:
    try:
        values = json.loads(result)
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}


def _word(values: dict[str, Any], name: str) -> str | None:
    return _text(values, name, MOST_REASON_BYTES)


def _text(values: dict[str, Any], name: str, limit: int = MOST_TEXT_BYTES) -> str | None:
    value = values.get(name)
    return cut(value.encode(errors="replace").decode(), limit) if isinstance(value, str) else None


def _number(values: dict[str, Any], name: str) -> int | None:
    value = values.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if abs(value) <= MOST_NUMBER else None
