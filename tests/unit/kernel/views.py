"""Objects for tests of the pure kernel: a conversation in a given position, and nothing else."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from nodus_core.kernel.decide import Plan, View
from nodus_core.kernel.objects import Conversation, Line, ObjectKey, Run, StopMarker
from nodus_core.kernel.sandboxes import Sandbox
from nodus_core.kernel.states import Guarantee, RunState, SandboxState, TaskKind, TaskState
from nodus_core.kernel.tasks import PlannedCall, Result, Task
from nodus_core.kernel.text import Inline

NOW = datetime(2030, 1, 1, tzinfo=UTC)
STOP = StopMarker(NOW, "alice", "Cancelled")
SANDBOX = Sandbox("conv-s1", "conv", SandboxState.RUNNING, "", NOW, "nodus/agent-tools")
SELECTION = '{"chosen_by":"configured"}'
"""Of an On Demand turn; what it names does not matter here."""


def head(**more: Any) -> Conversation:
    """A conversation with one accepted input whose turn is open."""
    values: dict[str, Any] = {"accepted": 1, "opened": 1, "sandbox": "conv-s1", **more}
    key = ObjectKey("acme", "web", "AgentRun", "run")
    return Conversation("conv", key, Inline("{}"), Line(1), NOW, Decimal(1), **values)


def run(**more: Any) -> Run:
    usual = {"state": RunState.RUNNING, "available": Decimal(1), "selection": SELECTION, "sandboxes": 1}
    values: dict[str, Any] = {**usual, **more}
    return Run("conv-1", "conv", 1, lines={}, created_at=NOW, **values)


def task(key: str, state: TaskState = TaskState.COMPLETED, **more: Any) -> Task:
    kind = TaskKind.MODEL if key == "route" or (key[0] == "r" and key[1:].isdigit()) else TaskKind.TOOL
    number = int(key[1:]) if kind is TaskKind.MODEL and key[1:].isdigit() else 1
    return Task("conv-1", key, kind, state, Guarantee.AT_MOST_ONCE, number, NOW, **more)


def round_task(number: int, calls: int = 0, *, error: str | None = None, **more: Any) -> Task:
    """A recorded round whose message asks for some calls."""
    planned = tuple(PlannedCall(f"r{number}t{index}", "run_command", index + 1) for index in range(calls))
    return task(f"r{number}", **{"calls": planned, "result": Result(error=error), **more})


def view(*tasks: Task, plan: Plan | None = None, **more: Any) -> View:
    """A prepared turn: its sandbox is up. `more` replaces fields of the view."""
    known = {item.key: item for item in (task("sandbox"), *tasks)}
    given = View(head(), plan or Plan(setup=False, routed=False), run(), known, SANDBOX)
    return replace(given, **more)
