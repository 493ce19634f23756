"""The source of a run: a commit or an archive, fetched once, and copied into each of its sandboxes (NOD-151 … NOD-156).

claimed ──► fetched, stored by its hash ──► pinned, and placed for the daemon, in one commit ──► unpacked: done
   │           └─ the host does not answer: tried again later     └─ lost, refused: placed again, with a fresh address
   └─ it is pinned already: another sandbox gets the same archive, and nothing is fetched
"""

import logging
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta

from nodus_core.conversations import commands, preparation
from nodus_core.conversations.attendance import attended
from nodus_core.conversations.backoff import early
from nodus_core.conversations.connections import Rights
from nodus_core.conversations.context import ArchiveSource, GitSource, Source
from nodus_core.conversations.ports import AGAIN, Directive
from nodus_core.conversations.resting import MESSAGE_LIMIT, wait_until
from nodus_core.conversations.session import Session
from nodus_core.conversations.shelf import Shelf
from nodus_core.conversations.sources import (
    FETCH_TIME_S,
    MOST_BYTES,
    MOST_DEPTH,
    MOST_ENTRIES,
    Snapshot,
    SourceRefused,
)
from nodus_core.journal.steps import Changes
from nodus_core.kernel import ids, projection
from nodus_core.kernel.decide import SANDBOX_GONE, SOURCE_FAILED, is_up
from nodus_core.kernel.errors import CorruptRow, RetryableError
from nodus_core.kernel.sandboxes import Command
from nodus_core.kernel.sources import Copied
from nodus_core.kernel.states import Guarantee, TaskKind, TaskState
from nodus_core.kernel.tasks import Result, Task
from nodus_core.kernel.text import cut
from nodus_core.kernel.times import stamp
from nodus_core.sandboxes.outcome import ARCHIVE_REFUSED, WITHDRAWN, Outcome
from nodus_core.sandboxes.tools import Order

log = logging.getLogger(__name__)

MOST_ATTEMPTS = 5
"""Tries of one copy: of its fetch, whatever made the earlier ones fail, and of its unpacking."""

FIRST_DELAY_S = 10.0
LONGEST_DELAY_S = 600.0
"""Seconds between two tries of a fetch, growing; a host that asks for more is not waited for."""

UNPACK_TIME_S = 600

ENOUGH_S = FETCH_TIME_S + 90
"""Seconds that an invocation must have left to begin a fetch."""


def copy_source(session: Session, task: Task | None) -> Directive | None:
    """Sees to it that the files of the run's source are in its sandbox."""
    if task is None:
        task = _begun(session)
    if task.sandbox is None:
        placed = _fetched(session, task)
        if not isinstance(placed, Task):
            return placed
        task = placed
    news = commands.wait_for(session, (task,))
    if not news.outcomes:
        return None if news.stopped else preparation.pause(session, (task,))
    _settle(session, task, news.outcomes[task.key])
    return None


def _begun(session: Session) -> Task:
    """Claims the step; with its command where the commit is pinned already. `sandbox` names where that runs."""
    run, source, copied = session.open_run, _source(session), session.conversation.source
    task = Task(
        run=run.uid,
        key=ids.source_key(run.sandboxes),
        kind=TaskKind.TOOL,
        tool=ids.SOURCE,
        state=TaskState.RUNNING,
        guarantee=Guarantee.AT_LEAST_ONCE,
        number=session.tasks[ids.sandbox_key(run.sandboxes)].number,
        started_at=session.ports.clock.now(),
        claim=session.claim(),
        input=session.keep(source.shown),
        sandbox=session.conversation.sandbox if copied else None,
    )
    rows = (_command(session, task, copied),) if copied else ()
    session.record(Changes(begun=(task,), commands=rows))
    if rows:
        commands.ring(session)
    return task


def _fetched(session: Session, task: Task) -> Task | Directive | None:
    """The step with its command placed, once the source is fetched and pinned; else what the line does meanwhile."""
    if session.remaining() < ENOUGH_S:
        return AGAIN
    if task.key not in session.fresh:
        if (waits := early(session, task)) is not None:
            return waits
        if task.attempt >= MOST_ATTEMPTS:
            return _fail(session, task, "Its workers ended before it was fetched.")
        task = session.retake(task, resent=False)
    session.fresh.discard(task.key)
    try:
        copied = attended(session, lambda: _stored(session), FETCH_TIME_S)
    except SourceRefused as refused:
        return _fail(session, task, str(refused))
    except (RetryableError, TimeoutError) as error:
        return _wait(session, task, error)
    if copied is None:
        session.reload()  # what was decided before the stop marker holds no longer
        return None
    return _placed(session, task, copied)


def _stored(session: Session) -> Copied:
    """Fetches the source and stores its archive; repeated, it may find a newer one until one is pinned."""
    with _snapshot(session) as found:
        archive = session.ports.payloads.put_file(session.scope, found.archive)
        return Copied(archive, found.size, found.commit, found.entries)


def _snapshot(session: Session) -> AbstractContextManager[Snapshot]:
    ports = session.ports
    match _source(session):
        case GitSource() as git:
            rights = Rights(Shelf(ports.journal, ports.payloads, ports.clock, ports.allowed), ports.vault)
            remote = rights.remote(session.conversation.object, git.connection, git.repo)
            return ports.repositories.snapshot(remote, git.ref)
        case ArchiveSource() as archive:
            return ports.downloads.snapshot(archive.url, archive.sha256)


def _placed(session: Session, task: Task, copied: Copied) -> Task:
    """Pins the source and places its copy, in one commit: from here on the run has no other."""
    head = session.conversation
    placed = replace(task, sandbox=head.sandbox, not_before=None, result=None)
    status = projection.with_source(session.object.status, _source(session).status(copied.version))
    session.run = session.ports.journal.steps.place_source(
        session.fence,
        session.open_run,
        old=task,
        new=placed,
        copied=copied,
        command=_command(session, placed, copied),
        more=session.projected(projection.resumed(status)),
    )
    session.conversation = replace(head, source=copied)
    session.tasks = {**session.tasks, task.key: placed}
    commands.ring(session)
    return placed


def _command(session: Session, task: Task, copied: Copied) -> Command:
    """Fills the working folder with the archive, and nothing else; the address in it works for some minutes."""
    request = {
        "path": session.context.working_dir,
        "get": session.ports.payloads.presign(session.scope, copied.archive),
        "size": copied.archive.size,
        "sha256": copied.archive.sha256,
        "maxBytes": MOST_BYTES,
        "maxEntries": MOST_ENTRIES,
        "maxDepth": MOST_DEPTH,
        "outerLinks": False,
        "strip": _source(session).strip,
        "timeoutS": UNPACK_TIME_S,
    }
    order = Order("restore", request)
    name = ids.command_id(task.run, task.key, task.attempt)
    kept = session.keep(commands.canonical(request), head=False)
    return commands.pending(commands.sandbox_of(task), name, order, kept, session.ports.clock.now())


def _settle(session: Session, task: Task, outcome: Outcome) -> None:
    """Records what the unpacking came to. What failed or was lost is done again: it fills the folder anew."""
    copied = session.conversation.source
    if copied is None:
        raise CorruptRow(f"conversation {session.conversation.id}: a source was copied and none is pinned")
    if outcome.state is TaskState.COMPLETED and not outcome.is_error:
        done = replace(
            task,
            state=TaskState.COMPLETED,
            finished_at=session.ports.clock.now(),
            result=Result(text=session.keep(copied.shown)),
        )
        session.record(Changes(settled=(done,)))
    elif outcome.error == SANDBOX_GONE or not is_up(session.sandbox) or session.view().unpaid:
        # Its sandbox is gone, or is to go: what it did there goes with it, and the next sandbox gets all of it.
        session.record(Changes(settled=(commands.settled(session, task, WITHDRAWN),)))
    elif outcome.error == ARCHIVE_REFUSED or task.attempt >= MOST_ATTEMPTS:
        said = session.text(outcome.text) if not isinstance(outcome.text, str) else outcome.text
        _fail(session, task, f"{_source(session).shown} could not be unpacked in the sandbox. {said}")
    else:
        log.warning("source %s/%s, attempt %s: %s", task.run, task.key, task.attempt, outcome.text)
        again = replace(task, attempt=task.attempt + 1, claim=session.claim())
        session.again(task, again, _command(session, again, copied))


def _fail(session: Session, task: Task, why: str) -> None:
    session.record(Changes(settled=(session.failure(task, SOURCE_FAILED, why),)))


def _wait(session: Session, task: Task, error: Exception) -> Directive | None:
    """The host does not answer now: another worker tries again later, and the run shows when."""
    wanted = error.retry_after if isinstance(error, RetryableError) else None
    why = str(error) or f"It took longer than {FETCH_TIME_S:.0f} s."
    delay = max(wanted or 0.0, FIRST_DELAY_S * 2 ** (task.attempt - 1))
    log.warning("source %s/%s, attempt %s: %s", task.run, task.key, task.attempt, why)
    if task.attempt >= MOST_ATTEMPTS or delay > LONGEST_DELAY_S:
        return _fail(session, task, why)
    until = session.ports.clock.now() + timedelta(seconds=delay)
    message = f"{cut(why, MESSAGE_LIMIT)}. Its host is asked again at {stamp(until)}."
    shown = projection.held_up(session.object.status, projection.SOURCE_UNAVAILABLE, message)
    session.let_go(task, shown, until)
    return wait_until(session, delay)


def _source(session: Session) -> Source:
    if session.context.source is None:
        raise CorruptRow(
            f"conversation {session.conversation.id}: a source is to be copied and none is named"
        )
    return session.context.source
