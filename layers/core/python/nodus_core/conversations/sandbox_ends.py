"""The ends of sandboxes: found out from their provider, or asked for there, and recorded."""

import logging

from nodus_core.conversations.session import Session
from nodus_core.journal.ports import TaskReport
from nodus_core.kernel import metering
from nodus_core.kernel.errors import ConditionFailed, CorruptRow, NodusError
from nodus_core.kernel.metering import Times
from nodus_core.kernel.sandboxes import Sandbox
from nodus_core.kernel.states import ALIVE_SANDBOXES, SandboxState

log = logging.getLogger(__name__)

BELIEVED_MISSING_S = 60.0
"""Seconds after a task's start within which the provider may not know it yet."""


def probe(session: Session, sandbox: Sandbox) -> None:
    """Asks the provider: a task that has ended takes its sandbox with it, also one whose start was never noted."""
    try:
        task = sandbox.task or session.ports.tasks.find(sandbox.id)
        report = TaskReport("missing") if task is None else session.ports.tasks.state(task)
    except NodusError as error:
        log.warning("the task of sandbox %s could not be asked for: %s", sandbox.id, error)
        return
    if task is None and sandbox.state is SandboxState.REQUESTED:
        return
    age = (session.ports.clock.now() - sandbox.created_at).total_seconds()
    if report.phase == "missing" and sandbox.state in ALIVE_SANDBOXES and age < BELIEVED_MISSING_S:
        return
    if report.phase in ("stopped", "missing"):
        times = metering.counted(sandbox, report.began, report.at, session.ports.clock.now())
        record_gone(session, sandbox, report.reason or f"its task is {report.phase}", times)


def has_gone(session: Session) -> bool:
    """Whether the line's sandbox has ended unheard: the provider is asked of one that should run."""
    sandbox = session.sandbox
    if sandbox is None or sandbox.state is not SandboxState.RUNNING:
        return False
    probe(session, sandbox)
    session.sandbox = session.ports.journal.sandbox(sandbox.id)
    return session.sandbox is None or session.sandbox.state is not SandboxState.RUNNING


def record_gone(session: Session, sandbox: Sandbox, reason: str, times: Times | None = None) -> None:
    """Records the end of a sandbox that is as it was seen; one that has moved on is looked at again.

    `times`: when its task began and ended, if that is known; else it ends now.
    """
    began, at = times or _until_now(session, sandbox)
    try:
        session.ports.journal.sandboxes.gone(sandbox.id, reason, at, began=began, only=(sandbox.state,))
    except ConditionFailed:
        log.info("sandbox %s is no longer %s", sandbox.id, sandbox.state)


def _until_now(session: Session, sandbox: Sandbox) -> Times:
    """The times of one whose task is about to be ended. One that still waits for its machine has cost nothing."""
    now = session.ports.clock.now()
    if sandbox.task is None:
        return None, now
    try:
        report = session.ports.tasks.state(sandbox.task)
    except NodusError as error:
        log.warning("the task of sandbox %s could not be asked for its times: %s", sandbox.id, error)
        return None, now
    waits = report.phase == "pending" and report.began is None
    return metering.counted(sandbox, now if waits else report.began, report.at, now)


def end_task(session: Session, sandbox: Sandbox, reason: str) -> None:
    """Asks the provider to end a sandbox's task, also one whose start was never noted."""
    task = sandbox.task or session.ports.tasks.find(sandbox.id)
    if task is not None:
        session.ports.tasks.stop(task, reason)


def give_up(session: Session, reason: str) -> None:
    """Ends the sandbox of a daemon that does not obey; its commands are lost from here on."""
    if session.sandbox is None:
        raise CorruptRow(f"conversation {session.conversation.id}: commands without a sandbox")
    end_task(session, session.sandbox, reason)
    record_gone(session, session.sandbox, reason)
