"""Commands that a line gives for itself and not for a step: it waits for them as for those of steps."""

import logging
from datetime import datetime

from nodus_core.conversations import commands, sandbox_ends
from nodus_core.conversations.ports import Directive
from nodus_core.conversations.resting import rest_until_due
from nodus_core.conversations.session import Session
from nodus_core.kernel.errors import ConditionFailed, CorruptRow
from nodus_core.kernel.sandboxes import Command, Sandbox
from nodus_core.kernel.states import SandboxState

log = logging.getLogger(__name__)

REST_S = 30.0
"""Seconds after which a line that rests meanwhile looks again; the kick of the command's end comes first."""

STOP_LOOK_S = 1.0
"""Seconds between looks whether somebody has stopped the line."""


def awaited(session: Session, sandbox: str, name: str, until: datetime) -> Command | Directive | None:
    """Waits for a command; returns it once it has ended, and as it is when `until` has come: then it is ended.

    Else what the line does meanwhile; None: it was stopped, and decides anew.
    """
    clock, sandboxes = session.ports.clock, session.ports.journal.sandboxes
    started, interval, probed, asked = clock.now(), commands.FIRST_INTERVAL_S, 0.0, 0.0
    while True:
        place, command = _look(session, sandbox, name)
        now = clock.now()
        waited = (now - started).total_seconds()
        if command.state in commands.OVER or now >= until:
            return command if command.state in commands.OVER else _ended(session, command, now)
        if place.state is SandboxState.GONE:
            commands.write_off(session, place, [command])
            continue
        if waited - asked >= STOP_LOOK_S:
            asked = waited
            if session.is_overdue() or session.owned_head().stop is not None:
                session.reload()
                return None
        if waited >= commands.WAIT_S:
            try:
                sandboxes.want_command(sandbox, name)
            except ConditionFailed:
                continue
            return rest_until_due(session, min(REST_S, max((until - now).total_seconds(), 1.0)))
        if place.connection != session.rung:
            commands.ring(session)
        if waited - probed >= commands.PROBE_S:
            probed = waited
            sandbox_ends.probe(session, place)
        clock.sleep(interval)
        interval = min(interval * 1.5, commands.LAST_INTERVAL_S)


def _look(session: Session, sandbox: str, name: str) -> tuple[Sandbox, Command]:
    place, command = session.ports.journal.sandbox(sandbox), session.ports.journal.command(sandbox, name)
    if place is None or command is None:
        raise CorruptRow(f"sandbox {sandbox}: it or its command {name!r} has no row")
    session.sandbox = place
    return place, command


def _ended(session: Session, command: Command, now: datetime) -> Command:
    """A command whose time is over is taken back, or the daemon asked to end it."""
    try:
        commands.end(session.ports.journal.sandboxes, command, now)
    except ConditionFailed as lost:
        log.info("command %s ended at the very moment at which its time was over: %s", command.id, lost)
    return session.ports.journal.command(command.sandbox, command.id) or command
