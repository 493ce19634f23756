"""Carrying out what people have said of steps whose outcome was not known (NODQ-55).

held ─► a person speaks ─┬─ Happened: it settles with the person's result
                         └─ DidNotHappen ─┬─ its sandbox lives, or it is a model call: done again, as a further attempt
                                          └─ its sandbox is gone: it settles as never begun
"""

import json
from collections.abc import Sequence
from dataclasses import replace

from nodus_core.conversations import calls, commands
from nodus_core.conversations.selection import Selection
from nodus_core.conversations.session import Session
from nodus_core.inference.exchange import spoken
from nodus_core.journal.steps import Changes
from nodus_core.kernel import ids
from nodus_core.kernel.decide import is_up
from nodus_core.kernel.errors import CorruptRow
from nodus_core.kernel.states import Statement, TaskKind, TaskState
from nodus_core.kernel.tasks import Resolution, Result, Task
from nodus_core.sandboxes.outcome import NEVER_BEGUN, told

CANCELED_TEXT = "A person has said that it did not happen. The run was cancelled before it was done again."


def resume(session: Session, tasks: Sequence[Task]) -> None:
    """Settles held tasks as people have said, and begins a further attempt of those that did not happen."""
    here = tuple(tasks[: calls.BEGUN_AT_ONCE])
    again = tuple(task for task in here if _can_be_done(session, task))
    settled = tuple(ended(session, task) for task in here if task not in again)
    if not again:
        return _settle(session, settled)
    taken = tuple(_taken_again(session, task) for task in again)
    rows = tuple(
        commands.same_again(session, task, commands.sandbox_of(task))
        for task in taken
        if task.kind is TaskKind.TOOL
    )
    session.record(Changes(settled=settled, again=taken, commands=rows))
    if rows:
        commands.ring(session)
    return None


def ended(session: Session, task: Task) -> Task:
    """The final task that a person's word makes of a held one which is not done again."""
    said = _said(task)
    now = session.ports.clock.now()
    if said.statement is Statement.DID_NOT_HAPPEN:
        if session.open_run.stop is not None:
            result = Result(text=session.keep(CANCELED_TEXT), is_error=True, error="Cancelled")
            return replace(task, state=TaskState.CANCELED, finished_at=now, result=result)
        return commands.settled(session, task, NEVER_BEGUN)
    if task.kind is TaskKind.MODEL:
        return _replied(session, task, said.result)
    result = said.result or Result()
    code = result.exit_code
    text = told(session.text(result.text) if result.text else "", code)
    failed = task.tool == ids.SETUP and code != 0
    return replace(
        task,
        state=TaskState.FAILED if failed else TaskState.COMPLETED,
        finished_at=now,
        result=Result(
            text=session.keep(text),
            is_error=code not in (None, 0),
            error="SetupFailed" if failed else None,
            exit_code=code,
        ),
    )


def _replied(session: Session, task: Task, result: Result | None) -> Task:
    """A model call that happened: what the person gives as its reply is the turn's answer."""
    if result is None or result.text is None:
        raise CorruptRow(f"task {task.run}/{task.key}: a person has said that it happened, and gave no reply")
    text = session.text(result.text)
    target = Selection.of(session.open_run).target
    session.transcript = None  # it is read with this reply
    return replace(
        task,
        state=TaskState.COMPLETED,
        finished_at=session.ports.clock.now(),
        message=session.keep(json.dumps(spoken(target, text).to_record(), ensure_ascii=False)),
        result=Result(text=session.keep(text)),
    )


def _settle(session: Session, settled: tuple[Task, ...]) -> None:
    if ids.round_of(settled[0].key) is None:
        session.record(Changes(settled=settled))
    else:
        calls.settle(session, settled)


def _can_be_done(session: Session, task: Task) -> bool:
    """Whether the sandbox in which it was begun is still there: it is never done in another one unasked.

    A model call needs none.
    """
    if task.kind is TaskKind.MODEL:
        return session.open_run.stop is None and _said(task).statement is Statement.DID_NOT_HAPPEN
    lives = session.sandbox is not None and session.sandbox.id == task.sandbox and is_up(session.sandbox)
    return lives and _said(task).statement is Statement.DID_NOT_HAPPEN


def _taken_again(session: Session, task: Task) -> Task:
    attempt = task.attempt + 1
    return replace(task, state=TaskState.RUNNING, attempt=attempt, claim=session.claim(), result=None)


def _said(task: Task) -> Resolution:
    if task.resolution is None:
        raise CorruptRow(f"task {task.run}/{task.key}: nobody has said what became of it")
    return task.resolution
