"""Tables and lines of a run's steps."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from nodus.cli import durations
from nodus.cli.picking import PREVIEW_COLUMNS, moment, pick
from nodus.cli.text import cut, line


def header(*, wide: bool) -> list[str]:
    """The headings of the table of steps."""
    more = ["GUARANTEE", "ATTEMPT", "RESOLVED"] if wide else []
    return ["#", "STEP", "STATE", "TIME", "COST", "TOKENS", *more, "DETAIL"]


def row(step: Mapping[str, Any], *, wide: bool) -> list[str]:
    """A step's cells."""
    cost = pick(step, "costUSD")
    more = [str(pick(step, "guarantee") or ""), str(pick(step, "attempt") or ""), _resolved(step)]
    return [
        str(pick(step, "index") or ""),
        str(pick(step, "name") or ""),
        state(step),
        time_of(step),
        "" if cost is None else f"${cost}{'*' if pick(step, 'costBasis') else ''}",
        tokens(step),
        *(more if wide else []),
        cut(detail(step), PREVIEW_COLUMNS),
    ]


def _resolved(step: Mapping[str, Any]) -> str:
    """Who said what became of the step, and what."""
    said = pick(step, "resolution")
    return "" if not said else f"{pick(said, 'outcome')} by {pick(said, 'by')}"


def state(step: Mapping[str, Any]) -> str:
    """The state, with a mark on a step that was sent again, and the guarantee of one whose outcome is not known."""
    word = str(pick(step, "state") or "")
    if word == "Uncertain":
        return f"{word} ({pick(step, 'guarantee')})"
    return f"{word} (resent)" if pick(step, "resent") else word


def time_of(step: Mapping[str, Any]) -> str:
    """How long the step took, or has taken so far."""
    begun = moment(pick(step, "startedAt"))
    if begun is None:
        return ""
    ended = moment(pick(step, "finishedAt")) or datetime.now(UTC)
    return durations.shown(max(0.0, (ended - begun).total_seconds()))


def tokens(step: Mapping[str, Any]) -> str:
    """Input and output tokens."""
    usage = pick(step, "usage")
    return "" if not usage else f"{pick(usage, 'inputTokens') or 0}+{pick(usage, 'outputTokens') or 0}"


def how(step: Mapping[str, Any]) -> str:
    """Model and exit code."""
    code = pick(step, "exitCode")
    return "  ".join(
        str(part) for part in (pick(step, "model"), None if code is None else f"exit {code}") if part
    )


def detail(step: Mapping[str, Any]) -> str:
    """What it was given, model, exit code, error and the beginning of the output, in one safe line."""
    given = pick(step, "input")
    shown = f"$ {given}" if given else None
    parts = [shown, how(step), error_text(pick(step, "error")), pick(step, "preview")]
    return "  ".join(line(str(part).strip()) for part in parts if part)


def error_text(error: Any) -> str | None:
    """A step's error: its reason and message."""
    if isinstance(error, Mapping):
        return ": ".join(str(part) for part in (pick(error, "reason"), pick(error, "message")) if part)
    return None if error is None else str(error)
