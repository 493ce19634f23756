"""What a person's word makes of a step whose outcome was not known (NODQ-55)."""

import json
from dataclasses import replace

from nodus_core.conversations import commands
from nodus_core.conversations.selection import Selection
from nodus_core.conversations.session import Session
from nodus_core.inference.exchange import spoken
from nodus_core.kernel import ids
from nodus_core.kernel.errors import CorruptRow
from nodus_core.kernel.states import Statement, TaskKind, TaskState
from nodus_core.kernel.tasks import Resolution, Result, Task
from nodus_core.sandboxes.outcome import NEVER_BEGUN, told

CANCELED_TEXT = "A person has said that it did not happen. The run was cancelled before it was done again."


def ended(session: Session, task: Task) -> Task:
    """The final task that a person's word makes of a held one which is not done again."""
    word = said(task)
    now = session.ports.clock.now()
    if word.statement is Statement.DID_NOT_HAPPEN:
        if session.open_run.stop is not None:
            result = Result(text=session.keep(CANCELED_TEXT), is_error=True, error="Cancelled")
            return replace(task, state=TaskState.CANCELED, finished_at=now, result=result)
        return commands.settled(session, task, NEVER_BEGUN)
    if task.kind is TaskKind.MODEL:
        return _replied(session, task, word.result)
    result = word.result or Result()
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


def said(task: Task) -> Resolution:
    """The word. Raises `CorruptRow` where there is none."""
    if task.resolution is None:
        raise CorruptRow(f"task {task.run}/{task.key}: nobody has said what became of it")
    return task.resolution
