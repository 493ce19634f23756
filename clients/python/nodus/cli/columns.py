"""Tables of objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, cast

from nodus._kinds import (
    AGENT,
    AGENT_GROUP,
    AGENT_RUN,
    API_KEY,
    BUDGET,
    CONNECTION,
    ENDPOINT,
    ENVIRONMENT,
    ENVIRONMENT_IMAGE,
    ORGANIZATION,
    PROJECT,
    SANDBOX,
    SECRET,
    Kind,
)
from nodus.cli import durations
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


def _latest_model(thing: Mapping[str, Any]) -> str:
    turns: list[Any] = pick(thing, "status.turns") or []
    model = pick(turns[-1], "model") if turns else None
    return str(model or pick(thing, "spec.model.name") or "")


def _agent_model(thing: Mapping[str, Any]) -> str:
    families: list[Any] = pick(thing, "spec.model.families") or []
    return str(pick(thing, "spec.model.name") or ",".join(str(family) for family in families))


def _joined(path: str) -> Callable[[Mapping[str, Any]], str]:
    def cell(thing: Mapping[str, Any]) -> str:
        words: list[Any] = pick(thing, path) or []
        return ",".join(str(word) for word in words)

    return cell


def _since(path: str) -> Callable[[Mapping[str, Any]], str]:
    def cell(thing: Mapping[str, Any]) -> str:
        then = moment(pick(thing, path))
        return "" if then is None else durations.shown(max(0, (datetime.now(UTC) - then).total_seconds()))

    return cell


def _group_runs(thing: Mapping[str, Any]) -> str:
    counts: dict[str, int] | None = pick(thing, "status.counts")
    return "" if counts is None else f"{counts.get('succeeded', 0)}/{sum(counts.values())}"


def _splits(thing: Mapping[str, Any]) -> str:
    splits: dict[str, list[Any]] = pick(thing, "spec.splits") or {}
    return ",".join(f"{name}={len(tasks)}" for name, tasks in splits.items())


def _permissions(thing: Mapping[str, Any]) -> str:
    return str(pick(thing, "spec.role") or _joined("spec.permissions")(thing))


def _readiness(thing: Mapping[str, Any]) -> str:
    conditions: list[Any] = pick(thing, "status.conditions") or []
    ready = next((each for each in conditions if pick(each, "type") == "Ready"), None)
    return "Ready" if pick(ready, "status") == "True" else str(pick(ready, "reason") or "")


def _prompt(thing: Mapping[str, Any]) -> str:
    return cut(line(pick(thing, "spec.input") or ""), PREVIEW_COLUMNS)


_NAME: Column = ("NAME", _text("metadata.name"))
_AGE: Column = ("AGE", _since("metadata.creationTimestamp"))
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
        [_NAME, ("FIELDS", _joined("status.fields")), ("REVISION", _text("metadata.generation")), _AGE],
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
    AGENT_GROUP.name: (
        [
            _NAME,
            ("PHASE", _text("status.phase")),
            ("RUNS", _group_runs),
            ("ACTIVE", _text("status.counts.active")),
            ("COST", _dollars("status.cost.totalUSD")),
            _AGE,
        ],
        [("AGENT", _text("spec.agent")), ("CAP", _dollars("spec.maxCostUSD"))],
    ),
    SANDBOX.name: (
        [
            _NAME,
            ("STATUS", _text("status.phase")),
            ("CPU", _text("spec.resources.cpu")),
            ("MEMORY", _text("spec.resources.memory")),
            ("DISK", _text("status.disk")),
            ("IDLE-TIMEOUT", _text("spec.idleTimeout")),
            ("COST", _dollars("status.costUSD")),
            _AGE,
        ],
        [("IMAGE", _text("spec.image")), ("EGRESS", _text("spec.network.egress.policy"))],
    ),
    ENVIRONMENT.name: (
        [
            _NAME,
            ("VERSION", _text("spec.version")),
            ("TASKS", _splits),
            ("IMAGE", _text("spec.image")),
            _AGE,
        ],
        [("GRADER", _text("spec.grader.image"))],
    ),
    ENVIRONMENT_IMAGE.name: (
        [
            _NAME,
            ("STATE", _text("status.state")),
            ("FROM", _text("spec.image")),
            ("DIGEST", _text("status.digest")),
            _AGE,
        ],
        [],
    ),
    ENDPOINT.name: (
        [
            _NAME,
            ("ACCESS", _text("spec.model.access")),
            ("MODEL", _text("spec.model.name")),
            ("CONCURRENCY", _text("spec.maxConcurrency")),
            ("CAP", _dollars("spec.maxCostUSD")),
            _AGE,
        ],
        [],
    ),
    CONNECTION.name: (
        [_NAME, ("TYPE", _text("spec.type")), ("INSTALLATION", _text("spec.github.installationId")), _AGE],
        [("REPOSITORIES", _joined("spec.github.repositories"))],
    ),
    ORGANIZATION.name: ([_NAME, ("DISPLAY-NAME", _text("spec.displayName")), _AGE], []),
    PROJECT.name: ([_NAME, ("DISPLAY-NAME", _text("spec.displayName")), _AGE], []),
    API_KEY.name: (
        [
            _NAME,
            ("PREFIX", _text("status.prefix")),
            ("PERMISSIONS", _permissions),
            ("PROJECTS", _joined("spec.projects")),
            ("STATE", _readiness),
            ("EXPIRES", _text("spec.expiresAt")),
            ("LAST-USED", _since("status.lastUsedAt")),
            _AGE,
        ],
        [("MADE-BY", _text("status.createdBy"))],
    ),
}


def _columns(kind: Kind, wide: bool) -> list[Column]:
    usual, more = _TABLES[kind.name]
    return [*usual, *more] if wide else usual
