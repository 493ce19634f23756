"""Carrying out what people have said of steps whose outcome was not known (NODQ-55).

held ─► a person speaks ─┬─ Happened: it settles with the person's result
                         └─ DidNotHappen ─┬─ its sandbox lives, or it is a model call: done again, as a further attempt
                                          └─ its sandbox is gone: it settles as never begun
"""

from collections.abc import Sequence
from dataclasses import replace

from nodus_core.conversations import calls, commands, resolved
from nodus_core.conversations.session import Session
from nodus_core.journal.steps import Changes
from nodus_core.kernel import ids
from nodus_core.kernel.decide import is_up
from nodus_core.kernel.states import Statement, TaskKind, TaskState
from nodus_core.kernel.tasks import Task


def resume(session: Session, tasks: Sequence[Task]) -> None:
    """Settles held tasks as people have said, and begins a further attempt of those that did not happen."""
    here = tuple(tasks[: calls.BEGUN_AT_ONCE])
    again = tuple(task for task in here if _can_be_done(session, task))
    settled = tuple(resolved.ended(session, task) for task in here if task not in again)
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
        return session.open_run.stop is None and resolved.said(task).statement is Statement.DID_NOT_HAPPEN
    lives = session.sandbox is not None and session.sandbox.id == task.sandbox and is_up(session.sandbox)
    return lives and resolved.said(task).statement is Statement.DID_NOT_HAPPEN


def _taken_again(session: Session, task: Task) -> Task:
    attempt = task.attempt + 1
    return replace(task, state=TaskState.RUNNING, attempt=attempt, claim=session.claim(), result=None)
