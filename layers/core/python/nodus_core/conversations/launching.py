"""Starting a sandbox's task, and waiting until its daemon has come up: for a run, and for a Sandbox of one's own."""

import logging
import secrets
from collections.abc import Mapping

from nodus_core.conversations import sandbox_ends
from nodus_core.conversations.machine import Machine
from nodus_core.conversations.ports import Directive
from nodus_core.conversations.resting import rest_until_due, wait_until
from nodus_core.conversations.session import Session
from nodus_core.journal.ports import TaskRequest
from nodus_core.kernel import ids
from nodus_core.kernel.errors import ConditionFailed, CorruptRow, RetryableError, TerminalError
from nodus_core.kernel.sandboxes import Sandbox
from nodus_core.kernel.states import SandboxState

log = logging.getLogger(__name__)

START_WAIT_S = 10.0
"""Seconds that a worker waits for a new sandbox's daemon before it lets the line rest."""

PROBE_S = 2.0
"""Seconds between questions to the provider whether the task that is to come up has ended."""

NO_ROOM_S = 15.0
"""Seconds until a start that the provider had no room for is tried again."""

START_LIMIT_S = 300.0
"""Seconds after which a sandbox that has not come up counts as failed."""

GPU_START_LIMIT_S = 900.0
"""The same for one with GPUs, whose machine may have to be started first, and has a large image to pull."""

SANDBOX_ID, ENROL_CODE = "NODUS_SANDBOX_ID", "NODUS_ENROL_CODE"
"""Variables that say whose a machine is."""

HARD_DEADLINE_S = 24 * 3600 * 7
"""Seconds after which a daemon ends itself whatever happens: no forgotten bill (FLD-10)."""


def told(machine: Machine, link: Mapping[str, str]) -> dict[str, str]:
    """The daemon's variables but for whose it is: what its task is started with."""
    return {
        **link,
        "NODUS_WORKSPACE": machine.working_dir,
        "NODUS_HARD_DEADLINE_S": str(HARD_DEADLINE_S),
        "NODUS_EGRESS": machine.egress,
        **({"NODUS_EGRESS_ALLOW": ",".join(machine.allow)} if machine.allow else {}),
    }


def new_sandbox(session: Session) -> Sandbox:
    """The conversation's next sandbox, not yet written; it takes up what was saved last."""
    saves = session.conversation.saves
    return Sandbox(
        id=ids.sandbox_id(session.conversation.id, session.conversation.sandboxes + 1),
        conversation=session.conversation.id,
        state=SandboxState.REQUESTED,
        enrol_hash="",
        created_at=session.ports.clock.now(),
        image=session.machine.image,
        pull=session.machine.pull,
        egress=session.machine.egress,
        secrets=session.machine.secrets,
        state_dir=session.machine.state_dir,
        restore=saves[0].name if saves else None,
    )


def come_up(session: Session, sandbox: Sandbox) -> Sandbox | Directive | None:
    """Sees to it that the sandbox's task is asked for, and waits for its daemon.

    Returns the sandbox once it runs or has failed to; else what the line does meanwhile, None: look again.
    """
    if sandbox.task is None and sandbox.state is SandboxState.REQUESTED:
        try:
            _launch(session, sandbox)
        except TerminalError as error:
            sandbox_ends.record_gone(session, sandbox, str(error))
        except RetryableError as error:
            return _no_room(session, sandbox, error)
    return _await(session, sandbox.id)


def _no_room(session: Session, sandbox: Sandbox, error: RetryableError) -> Directive | None:
    """The provider has no capacity now: tried again until the start has taken too long."""
    log.warning("sandbox %s cannot start yet: %s", sandbox.id, error)
    if (session.ports.clock.now() - sandbox.created_at).total_seconds() >= _limit_s(session):
        sandbox_ends.record_gone(session, sandbox, str(error))
        return None
    return wait_until(session, NO_ROOM_S)


def _limit_s(session: Session) -> float:
    return GPU_START_LIMIT_S if session.machine.gpus else START_LIMIT_S


def _launch(session: Session, sandbox: Sandbox) -> None:
    """Asks the provider for the task, unless a worker before this one did and died before it noted it.

    The enrolment code is made here and only its hash is kept: a code that no task was given is replaced.
    """
    machine = session.machine
    existing = session.ports.tasks.find(sandbox.id)
    if existing is not None:
        session.ports.journal.sandboxes.note_task(sandbox.id, existing)
        return
    code = secrets.token_urlsafe(24)
    now = session.ports.clock.now()
    session.ports.journal.sandboxes.issue_code(session.fence, sandbox.id, ids.digest(code), now)
    request = TaskRequest(
        sandbox.id,
        {**told(machine, session.ports.link), SANDBOX_ID: sandbox.id, ENROL_CODE: code},
        cpu=machine.cpu,
        memory=machine.memory,
        tags={"nodus:run": session.conversation.id, "nodus:egress": machine.egress},
        image=machine.pull,
        gpus=machine.gpus,
    )
    session.ports.journal.sandboxes.note_task(sandbox.id, session.ports.tasks.run(request))


def _await(session: Session, sandbox_id: str) -> Sandbox | Directive | None:
    clock, started = session.ports.clock, session.ports.clock.now()
    interval, probed = 0.02, 0.0
    while True:
        sandbox = session.ports.journal.sandbox(sandbox_id)
        if sandbox is None:
            raise CorruptRow(f"sandbox {sandbox_id} has no row")
        session.sandbox = sandbox
        if sandbox.state is not SandboxState.REQUESTED:
            return sandbox
        if session.is_overdue():
            return None
        waited = (clock.now() - started).total_seconds()
        if waited >= START_WAIT_S or session.remaining() < START_WAIT_S:
            return _rest_for_start(session, sandbox)
        if waited - probed >= PROBE_S:
            probed = waited
            sandbox_ends.probe(session, sandbox)
        clock.sleep(interval)
        interval = min(interval * 1.3, 0.5)


def _rest_for_start(session: Session, sandbox: Sandbox) -> Directive | None:
    age = (session.ports.clock.now() - sandbox.created_at).total_seconds()
    sandbox_ends.probe(session, sandbox)
    limit = _limit_s(session)
    if age >= limit:
        sandbox_ends.record_gone(session, sandbox, f"no daemon after {limit:.0f} s")
        return None
    try:
        session.ports.journal.sandboxes.want_sandbox(sandbox.id)
    except ConditionFailed:
        return None
    return rest_until_due(session, 30)
