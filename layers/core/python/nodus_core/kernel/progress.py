"""What a step does to its run's head: sequence, open tasks, money. Pure arithmetic, one place for it."""

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal

from nodus_core.kernel import ids
from nodus_core.kernel.decide import CUT
from nodus_core.kernel.money import ZERO, Purse
from nodus_core.kernel.objects import Attention, Run
from nodus_core.kernel.states import FINAL_TASKS, RunState, TaskKind, TaskState
from nodus_core.kernel.tasks import Observation, Task, Usage


def begin(run: Run, tasks: Iterable[Task]) -> Run:
    """The run once `tasks` have begun: they are open, and what they may cost is reserved.

    Raises `ValueError` when a reserve does not fit (callers ask `fits` first). What costs nothing always may
    begin: what has happened must be recordable, also where it cost more than was reserved.
    """
    begun = tuple(tasks)
    reserve = sum((task.reserved or ZERO for task in begun), ZERO)
    if reserve and not fits(run, reserve):
        left = run.available if run.purse is None else min(run.available, run.purse.left)
        raise ValueError(f"run {run.uid}: {reserve} USD do not fit under the {left} USD left")
    return replace(
        run,
        version=run.version + 1,
        available=run.available - reserve,
        purse=_spend(run.purse, reserve, ZERO),
        open=run.open | {task.key for task in begun},
        sandboxes=run.sandboxes + sum(ids.preparation(task.key) == ids.SANDBOX for task in begun),
        rounds=max([run.rounds, *(task.number for task in begun if _is_round(task))]),
    )


def settle(run: Run, tasks: Iterable[Task]) -> Run:
    """The run once `tasks` are final: observed in the given order, reserves back, costs booked.

    A task that was never open (refused before it began) is observed all the same. One whose outcome is not known
    is held instead, unless the run is stopped: it stays open until a person has said what became of it.
    """
    given = tuple(tasks)
    if any(task.state not in FINAL_TASKS for task in given):
        raise ValueError(f"run {run.uid}: a task that is not final cannot settle")
    unknown = tuple(task for task in given if is_held(run, task))
    settled = tuple(task for task in given if not is_held(run, task))
    back = sum((task.reserved or ZERO for task in settled if task.key in run.open), ZERO)
    cost = sum((booked(task) for task in settled), ZERO)
    return replace(
        run,
        state=RunState.NEEDS_ATTENTION if unknown else run.state,
        attention=run.attention + tuple(_attention(task) for task in unknown),
        cut_rounds=_cut_rounds(run, settled),
        version=run.version + 1,
        seq=run.seq + len(settled),
        available=run.available + back - cost,
        purse=_spend(run.purse, cost - back, cost),
        spent=run.spent + cost,
        usage=run.usage + total_usage(settled),
        calls=run.calls + sum(len(task.calls) for task in settled),
        open=run.open - {task.key for task in settled},
    )


def observations(run: Run, tasks: Iterable[Task]) -> list[Observation]:
    """The log entries of those of `tasks` that settle, numbered behind what `run` (before it settled them) has."""
    settled = [task for task in tasks if not is_held(run, task)]
    return [
        Observation(run.uid, run.seq + offset, task.key, task.state, task.finished_at or task.started_at)
        for offset, task in enumerate(settled, start=1)
    ]


def is_held(run: Run, task: Task) -> bool:
    """Whether a task of unknown outcome waits for a person; in a run that is stopped nobody is asked any more."""
    return task.state is TaskState.UNCERTAIN and run.stop is None


def recorded(run: Run, task: Task) -> Task:
    """The task as it is stored when it settles: a held one has not finished."""
    return replace(task, finished_at=None) if is_held(run, task) else task


def resolve(run: Run, task: str) -> Run:
    """The run once a person has said what became of a held task; it is held until nothing is left to say."""
    left = tuple(item for item in run.attention if item.task != task)
    state = RunState.NEEDS_ATTENTION if left else RunState.RUNNING
    return replace(run, version=run.version + 1, attention=left, state=state)


def fits(run: Run, reserve: Decimal) -> bool:
    """Whether a call of at most this cost may be made now: under the run's cap, and covered by its payers (NOD-128)."""
    return reserve <= run.available and covered(run, reserve)


def covered(run: Run, reserve: Decimal) -> bool:
    """Whether what budgets and credits have handed to the run covers a call of at most this cost."""
    paid = run.purse is not None and bool(run.purse.payers)
    return not paid or run.purse is None or reserve <= run.purse.left


def _spend(purse: Purse | None, taken: Decimal, cost: Decimal) -> Purse | None:
    """The purse once `taken` of it is reserved (less than nothing: given back) and `cost` is spent."""
    if purse is None or not purse.payers:
        return purse
    return replace(purse, left=purse.left - taken, due=purse.due + cost)


def booked(task: Task) -> Decimal:
    """What a settled task counts as spent: its cost, or its whole reserve where the cost is unknown.

    Whoever knows that a call certainly did not run, or was not charged, says so by a cost of zero.
    """
    return task.cost if task.cost is not None else (task.reserved or ZERO)


def total_usage(tasks: Iterable[Task]) -> Usage:
    return sum((task.usage for task in tasks if task.usage), Usage())


def _attention(task: Task) -> Attention:
    what = task.result.error if task.result and task.result.error else "OutcomeUnknown"
    return Attention(task.key, what, task.finished_at or task.started_at)


def _cut_rounds(run: Run, settled: tuple[Task, ...]) -> int:
    rounds = [task for task in settled if _is_round(task)]
    if not rounds:
        return run.cut_rounds
    return run.cut_rounds + 1 if all(task.result and task.result.error == CUT for task in rounds) else 0


def _is_round(task: Task) -> bool:
    return task.kind is TaskKind.MODEL and task.key.startswith("r") and task.key[1:].isdigit()
