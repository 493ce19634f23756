"""Tables of objects and steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, cast

from nodus.cli import durations
from nodus.cli.kinds import AGENT, AGENT_RUN, BUDGET, SECRET, Kind
from nodus.cli.text import cut, line

Column = tuple[str, Callable[[Mapping[str, Any]], str]]
PREVIEW_COLUMNS = 60


def header(kind: Kind, *, wide: bool) -> list[str]:
    """The headings of a kind's table."""
    return [name for name, _ in _columns(kind, wide)]


def row(kind: Kind, thing: Mapping[str, Any], *, wide: bool) -> list[str]:
    """An object's cells."""
    return [cell(thing) for _, cell in _columns(kind, wide)]


def pick(thing: Any, path: str) -> Any:
    """The value at a dotted path, or ``None``."""
    for name in path.split("."):
        if not isinstance(thing, Mapping):
            return None
        thing = cast("Mapping[str, Any]", thing).get(name)
    return thing


def _text(path: str) -> Callable[[Mapping[str, Any]], str]:
    def cell(thing: Mapping[str, Any]) -> str:
        value = pick(thing, path)
        return "" if value is None else str(value)

    return cell


def _dollars(path: str) -> Callable[[Mapping[str, Any]], str]:
    def cell(thing: Mapping[str, Any]) -> str:
        value = pick(thing, path)
        return "" if value is None else f"${value}"

    return cell


def moment(text: Any) -> datetime | None:
    """An RFC 3339 time, or ``None`` where there is none."""
    try:
        return datetime.fromisoformat(str(text))
    except ValueError:
        return None


def _age(thing: Mapping[str, Any]) -> str:
    made = moment(pick(thing, "metadata.creationTimestamp"))
    return "" if made is None else durations.shown(max(0, (datetime.now(UTC) - made).total_seconds()))


def _latest_model(thing: Mapping[str, Any]) -> str:
    turns: list[Any] = pick(thing, "status.turns") or []
    model = pick(turns[-1], "model") if turns else None
    return str(model or pick(thing, "spec.model.name") or "")


def _agent_model(thing: Mapping[str, Any]) -> str:
    families: list[Any] = pick(thing, "spec.model.families") or []
    return str(pick(thing, "spec.model.name") or ",".join(str(family) for family in families))


def _fields(thing: Mapping[str, Any]) -> str:
    fields: list[Any] = pick(thing, "status.fields") or []
    return ",".join(str(field) for field in fields)


def _prompt(thing: Mapping[str, Any]) -> str:
    return cut(line(pick(thing, "spec.input") or ""), PREVIEW_COLUMNS)


_NAME: Column = ("NAME", _text("metadata.name"))
_AGE: Column = ("AGE", _age)
_TABLES: dict[str, tuple[list[Column], list[Column]]] = {
    AGENT.name: (
        [
            _NAME,
            ("ACCESS", _text("spec.model.access")),
            ("MODEL", _agent_model),
            ("RUN-CAP", _dollars("spec.perRunMaxCostUSD")),
            ("STATE", _text("spec.state")),
            ("REVISION", _text("metadata.generation")),
            _AGE,
        ],
        [("IMAGE", _text("spec.image")), ("EGRESS", _text("spec.network.egress.policy"))],
    ),
    AGENT_RUN.name: (
        [
            _NAME,
            ("PHASE", _text("status.phase")),
            ("REASON", _text("status.reason")),
            ("MODEL", _latest_model),
            ("COST", _dollars("status.cost.totalUSD")),
            ("CAP", _dollars("status.cost.limitUSD")),
            _AGE,
        ],
        [
            ("COMPUTE", _dollars("status.cost.computeUSD")),
            ("AGENT", _text("spec.agent")),
            ("SANDBOX", _text("status.sandbox.phase")),
            ("INPUT", _prompt),
        ],
    ),
    SECRET.name: (
        [_NAME, ("FIELDS", _fields), ("REVISION", _text("metadata.generation")), _AGE],
        [],
    ),
    BUDGET.name: (
        [
            _NAME,
            ("PHASE", _text("status.phase")),
            ("LIMIT", _dollars("spec.limitUSD")),
            ("SPENT", _dollars("status.spentUSD")),
            ("RESERVED", _dollars("status.reservedUSD")),
            ("REMAINING", _dollars("status.remainingUSD")),
            _AGE,
        ],
        [("MODELS", _dollars("status.modelUSD")), ("COMPUTE", _dollars("status.computeUSD"))],
    ),
}


def _columns(kind: Kind, wide: bool) -> list[Column]:
    usual, more = _TABLES[kind.name]
    return [*usual, *more] if wide else usual


def step_header(*, wide: bool) -> list[str]:
    """The headings of the table of steps."""
    more = ["GUARANTEE", "ATTEMPT", "RESOLVED"] if wide else []
    return ["#", "STEP", "STATE", "TIME", "COST", "TOKENS", *more, "DETAIL"]


def step_row(step: Mapping[str, Any], *, wide: bool) -> list[str]:
    """A step's cells."""
    cost = pick(step, "costUSD")
    more = [str(pick(step, "guarantee") or ""), str(pick(step, "attempt") or ""), _resolved(step)]
    return [
        str(pick(step, "index") or ""),
        str(pick(step, "name") or ""),
        step_state(step),
        step_time(step),
        "" if cost is None else f"${cost}",
        step_tokens(step),
        *(more if wide else []),
        cut(step_detail(step), PREVIEW_COLUMNS),
    ]


def _resolved(step: Mapping[str, Any]) -> str:
    """Who said what became of the step, and what."""
    said = pick(step, "resolution")
    return "" if not said else f"{pick(said, 'outcome')} by {pick(said, 'by')}"


def step_state(step: Mapping[str, Any]) -> str:
    """The state, with a mark on a step that was sent again, and the guarantee of one whose outcome is not known."""
    state = str(pick(step, "state") or "")
    if state == "Uncertain":
        return f"{state} ({pick(step, 'guarantee')})"
    return f"{state} (resent)" if pick(step, "resent") else state


def step_time(step: Mapping[str, Any]) -> str:
    """How long the step took, or has taken so far."""
    begun = moment(pick(step, "startedAt"))
    if begun is None:
        return ""
    ended = moment(pick(step, "finishedAt")) or datetime.now(UTC)
    return durations.shown(max(0.0, (ended - begun).total_seconds()))


def step_tokens(step: Mapping[str, Any]) -> str:
    """Input and output tokens."""
    usage = pick(step, "usage")
    return "" if not usage else f"{pick(usage, 'inputTokens') or 0}+{pick(usage, 'outputTokens') or 0}"


def step_detail(step: Mapping[str, Any]) -> str:
    """Model, exit code, error and the beginning of the output, in one safe line."""
    code = pick(step, "exitCode")
    parts = [
        pick(step, "model"),
        None if code is None else f"exit {code}",
        _error_text(pick(step, "error")),
        pick(step, "preview"),
    ]
    return "  ".join(line(str(part).strip()) for part in parts if part)


def _error_text(error: Any) -> str | None:
    if isinstance(error, Mapping):
        return ": ".join(str(part) for part in (pick(error, "reason"), pick(error, "message")) if part)
    return None if error is None else str(error)
