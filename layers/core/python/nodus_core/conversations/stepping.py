"""The steps of a run as people see them: what was observed, in order, then what is open (NOD-071, NODQ-86)."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from nodus_core.access.door import Place
from nodus_core.conversations.listing import MOST_REPLY, PageOf, token, untoken
from nodus_core.conversations.reading import Shown
from nodus_core.conversations.shelf import Shelf, head_of, scope_of
from nodus_core.kernel import ids, projection
from nodus_core.kernel.errors import CorruptRow, Refusal
from nodus_core.kernel.objects import AGENT_RUN, Conversation, Object, Run
from nodus_core.kernel.progress import booked
from nodus_core.kernel.states import TaskState
from nodus_core.kernel.tasks import Task
from nodus_core.kernel.text import PREVIEW_LIMIT, Text, cut, neutral, preview
from nodus_core.kernel.times import stamp

INPUT_LIMIT = 1024
"""Bytes of what a step was given that its entry shows."""

_KINDS = {ids.ROUTE: "route"}
_STATES = {
    TaskState.COMPLETED: "Completed",
    TaskState.FAILED: "Failed",
    TaskState.TIMED_OUT: "Failed",
    TaskState.SKIPPED: "Failed",
    TaskState.UNCERTAIN: "Uncertain",
    TaskState.CANCELED: "Cancelled",
}
_GROUP = 100
_MOST_STEPS = 10**9


@dataclass(frozen=True)
class Position:
    """Behind which step a page goes on.

    `seq` is the observation shown last of the turn's run, `index` that of the step shown last, and `opened`
    (start and key) the open task shown last: an open task that settles is shown again, among the observed.
    """

    turn: int = 1
    seq: int = 0
    index: int = 0
    opened: tuple[str, str] | None = None

    def to_token(self) -> str:
        return token(json.dumps([self.turn, self.seq, self.index, self.opened]))

    @classmethod
    def from_token(cls, text: str) -> "Position":
        """Raises `Refusal` `BadRequest`."""
        try:
            told = json.loads(untoken(text))
        except (ValueError, RecursionError):
            told = None
        match told:
            case [int(turn), int(seq), int(index), None] if _counts(turn, seq, index):
                return cls(turn, seq, index)
            case [int(turn), int(seq), int(index), [str(start), str(key)]] if _counts(turn, seq, index):
                return cls(turn, seq, index, (start, key))
            case _:
                raise Refusal("BadRequest", "continue is not a token that a step list gave")


def _counts(turn: int, seq: int, index: int) -> bool:
    """Whether these are numbers that a position may hold: the largest still fit into a row's key."""
    return 1 <= turn <= _MOST_STEPS and 0 <= seq <= _MOST_STEPS and 0 <= index <= _MOST_STEPS


@dataclass(frozen=True)
class Stepping:
    """Reads of steps."""

    shelf: Shelf

    def page(self, place: Place, name: str, limit: int, after: str | None) -> PageOf:
        """At most `limit` steps in order; fewer when they are large. Raises `Refusal` `NotFound`, `BadRequest`."""
        position = Position() if after is None else Position.from_token(after)
        obj = self.shelf.find(place, AGENT_RUN, name)
        with self.shelf.reading(obj):
            return self._page(obj, limit, position)

    def _page(self, obj: Object, limit: int, position: Position) -> PageOf:
        head = head_of(self.shelf.journal, obj)
        items: list[Shown] = []
        size = 0
        for here, step in self._steps(obj, head, position):
            size += len(json.dumps(step))
            if items and (len(items) == limit or size > MOST_REPLY):
                return PageOf(items, position.to_token())
            items.append(step)
            position = here
        return PageOf(items, None)

    def _steps(self, obj: Object, head: Conversation, position: Position) -> Iterator[tuple[Position, Shown]]:
        """Every step behind a position, with its own position."""
        index = position.index
        for number in range(position.turn, head.opened + 1):
            run = self.shelf.journal.run(ids.run_id(head.id, number))
            if run is None:
                raise CorruptRow(f"conversation {head.id}: turn {number} has no run")
            start = position if number == position.turn else Position(number, index=index)
            for at, task in self._walk(obj, run, start):
                index = at.index
                yield at, step(run, task, index)

    def _walk(self, obj: Object, run: Run, position: Position) -> Iterator[tuple[Position, Task]]:
        """A run's observed tasks in their order, then its open ones by start."""
        journal = self.shelf.journal
        while position.seq < run.seq:
            # Not beyond the head as it was read: what settles meanwhile is among its open tasks, and would be given
            # twice.
            entries = journal.observations(
                run.uid, after=position.seq, limit=min(_GROUP, run.seq - position.seq)
            )
            if not entries:
                raise CorruptRow(f"run {run.uid}: no observation behind {position.seq} of {run.seq}")
            tasks = journal.tasks(run.uid, [entry.task for entry in entries])
            tasks = self._with_heads(obj, tasks)
            for entry in entries:
                if entry.task not in tasks:
                    raise CorruptRow(f"run {run.uid}: task {entry.task!r} was observed and has no row")
                position = Position(run.turn, entry.seq, position.index + 1, position.opened)
                yield position, replace(tasks[entry.task], state=entry.state)
        opened = self._with_heads(obj, journal.tasks(run.uid, sorted(run.open))).values()
        for task in sorted(opened, key=lambda task: (task.started_at, task.key)):
            mark = (stamp(task.started_at), task.key)
            if position.opened is None or mark > position.opened:
                position = replace(position, index=position.index + 1, opened=mark)
                yield position, task

    def _with_heads(self, obj: Object, tasks: dict[str, Task]) -> dict[str, Task]:
        """The tasks, each with the beginnings of its input and result; without any text once texts have expired."""
        if obj.expired_at is not None:
            return {
                key: replace(task, input=None, result=task.result and replace(task.result, text=None))
                for key, task in tasks.items()
            }
        texts = {(key, name): text for key, task in tasks.items() for name, text in _texts(task)}
        heads = dict(
            zip(texts, self.shelf.payloads.with_heads(scope_of(obj), [*texts.values()]), strict=True)
        )
        return {
            key: _headed(task, heads.get((key, "in")), heads.get((key, "out"))) for key, task in tasks.items()
        }


def _texts(task: Task) -> Iterator[tuple[str, Text]]:
    """What a task was given, and what came out."""
    if task.input is not None:
        yield "in", task.input
    if task.result is not None and task.result.text is not None:
        yield "out", task.result.text


def _headed(task: Task, given: Text | None, came: Text | None) -> Task:
    result = task.result if task.result is None or came is None else replace(task.result, text=came)
    return replace(task, input=given or task.input, result=result)


def step(run: Run, task: Task, index: int) -> Shown:
    """One step as it is shown (docs/protocols.md §1); what is not known is left out."""
    shown: Shown = {
        "index": index,
        "name": ids.step_name(run.turn, task.key, task.tool, task.number),
        "kind": _kind(task),
        "state": state_of(task),
        "guarantee": task.guarantee.value,
        "attempt": task.attempt,
        "startedAt": stamp(task.started_at),
    }
    optional: dict[str, Any] = {
        "finishedAt": task.finished_at and stamp(task.finished_at),
        **_cost(task),
        "usage": task.usage and projection.usage_entry(task.usage.input_tokens, task.usage.output_tokens),
        "model": task.model,
        "resent": task.resent or None,
        "resolution": _resolution(task),
        "input": _input(task),
        "preview": _preview(task),
    }
    if task.result is not None:
        optional["exitCode"] = task.result.exit_code
        optional["rawBytes"] = task.result.raw_bytes
        optional["droppedBytes"] = task.result.dropped_bytes
        optional["error"] = task.result.error
    return shown | {name: value for name, value in optional.items() if value is not None}


def _cost(task: Task) -> dict[str, Any]:
    """What the step has cost; where its provider did not say, what was reserved for it is what was booked."""
    if task.cost is not None:
        return {"costUSD": projection.dollars(task.cost)}
    if task.finished_at is None or not task.reserved:
        return {}
    return {"costUSD": projection.dollars(booked(task)), "costBasis": "Reserve"}


def _kind(task: Task) -> str:
    return ids.preparation(task.key) or _KINDS.get(task.key) or ("tool" if task.tool else "model")


def _resolution(task: Task) -> Shown | None:
    """What a person said last of the step, when its outcome was not known."""
    if not task.resolutions:
        return None
    said = task.resolutions[-1]
    return {"outcome": said.statement.value, "by": said.by, "at": stamp(said.at), "attempt": said.attempt}


def state_of(task: Task) -> str:
    """The word for the state of a step."""
    if task.state is TaskState.UNCERTAIN and task.finished_at is None and task.resolution is not None:
        return "Running"  # a person has spoken, and the line carries it out
    return _STATES.get(task.state, "Running")


def _input(task: Task) -> str | None:
    """The beginning of what a step was given, a command as its line; harmless on a screen (FLD-08)."""
    if task.input is None:
        return None
    text = preview(task.input)
    if task.tool == ids.RUN_COMMAND:
        text = _command(text) or text
    return cut(neutral(text), INPUT_LIMIT)


def _command(arguments: str) -> str | None:
    """The command in a call's arguments, if these are whole."""
    try:
        found = json.loads(arguments)
    except (ValueError, RecursionError):
        return None
    command = found.get("command") if isinstance(found, dict) else None
    return command if isinstance(command, str) else None


def _preview(task: Task) -> str | None:
    """The beginning of the result; harmless on a screen (FLD-08)."""
    text = task.result.text if task.result is not None else None
    return None if text is None else cut(neutral(preview(text)), PREVIEW_LIMIT)
