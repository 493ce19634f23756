"""The fake server's runs: a fixed little life that goes on by one step whenever somebody looks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

MODEL = "scripted/claude-sonnet-5-5"


@dataclass(frozen=True)
class Outcome:
    """How a run ends: its phase and answer. ``Waiting`` phases stay until the run is cancelled."""

    phase: str = "Succeeded"
    answer: str | None = "done"
    reason: str | None = None
    message: str | None = None
    output: str = "workspace-ready"
    unresolved: tuple[str, ...] = ()


@dataclass
class Run:
    """One run's life, counted in half steps; each look moves it on by ``pace`` of them."""

    outcome: Outcome
    names: tuple[tuple[str, str], ...] = (
        ("sandbox", "sandbox"),
        ("setup", "setup"),
        ("turn-1.route", "route"),
        ("turn-1.model.1", "model"),
        ("turn-1.tool.run_command.1", "tool"),
        ("turn-1.model.2", "model"),
    )
    looks: int = 0
    pace: int = 1
    cancelled: bool = False
    messages: dict[str, str] = field(default_factory=dict)
    created: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def unresolved(self) -> tuple[str, ...]:
        """Steps that a person is asked about."""
        return self.outcome.unresolved if self.over and not self.cancelled else ()

    def resolve(self, step: str) -> None:
        """Goes on with the last one, and ends well."""
        left = tuple(name for name in self.outcome.unresolved if name != step)
        self.outcome = replace(self.outcome, unresolved=left) if left else Outcome()

    @property
    def over(self) -> bool:
        return self.cancelled or self.looks > 2 * len(self.names)

    @property
    def finished(self) -> bool:
        return self.cancelled or (self.over and self.outcome.phase in {"Succeeded", "Failed", "Cancelled"})

    def look(self) -> None:
        self.looks += self.pace

    def end(self) -> None:
        self.looks = 2 * len(self.names) + 1

    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = {"phase": "Queued", "agentGeneration": 1, "attempts": 1, "turns": []}
        status["cost"] = {"totalUSD": "0.00", "limitUSD": "1.00", "computeUSD": "0"}
        if not self.looks and not self.cancelled:
            return status
        status |= {"phase": "Running", "startedAt": _stamp(self.created)}
        status["sandbox"] = {
            "name": "sb-1",
            "image": "nodus/agent-tools",
            "egress": "Deny",
            "phase": "Running",
        }
        status["turns"] = [
            {"turn": 1, "model": MODEL, "chosenBy": "jev", "costUSD": "0.0021", "phase": "Running"}
        ]
        if self.over:
            self._ended(status)
        return status

    def _ended(self, status: dict[str, Any]) -> None:
        end = Outcome("Cancelled", None, "Cancelled") if self.cancelled else self.outcome
        cost = {"totalUSD": "0.0021", "limitUSD": "1.00", "computeUSD": "0.0004"}
        status |= {"phase": end.phase, "cost": cost}
        status["turns"][0]["phase"] = "Succeeded" if end.answer is not None else end.phase
        for name, value in (("reason", end.reason), ("message", end.message)):
            if value is not None:
                status[name] = value
        if self.unresolved:
            status["unresolved"] = [{"step": name, "what": "SandboxLost"} for name in self.unresolved]
        if end.answer is not None:
            preview = end.answer.encode()[:4096].decode(errors="ignore")
            status["answer"] = {"preview": preview, "turn": 1}
        if self.finished:
            status["sandbox"]["phase"] = "Deleted"
            status["finishedAt"] = _stamp(self.created)

    def answer(self) -> str | None:
        return self.outcome.answer if self.over and not self.cancelled else None

    def steps(self) -> list[dict[str, Any]]:
        begun = len(self.names) if self.over else (self.looks + 1) // 2
        done = len(self.names) if self.over else self.looks // 2
        return [self._step(index, index < done) for index in range(begun)]

    def _step(self, index: int, done: bool) -> dict[str, Any]:
        name, kind = self.names[index]
        held = name in self.unresolved
        step: dict[str, Any] = {"index": index + 1, "name": name, "kind": kind, "attempt": 1}
        state = "Uncertain" if held else "Completed" if done else "Running"
        step |= {"state": state, "guarantee": "AtMostOnce" if kind == "tool" else "ExactlyOnce"}
        step["startedAt"] = _stamp(self.created)
        if done and not held:
            step["finishedAt"] = _stamp(self.created)
        if kind in {"model", "route"}:
            step |= {"model": MODEL, "costUSD": "0.0007", "usage": {"inputTokens": 120, "outputTokens": 12}}
        if kind in {"setup", "tool"} and done:
            step |= {"exitCode": 0, "preview": self.outcome.output}
        return step


def _stamp(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
