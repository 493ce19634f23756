"""Kicks: telling a line to look. Each may be lost, late or doubled; the sweeper makes up for it."""

import logging
from dataclasses import dataclass

from nodus_core.conversations.deadline import expire
from nodus_core.journal.journal import Journal
from nodus_core.journal.ports import Clock, Executions
from nodus_core.kernel.errors import ConditionFailed
from nodus_core.kernel.objects import Conversation
from nodus_core.kernel.stopping import is_overdue

MOST_DEAD_KICKS = 2
"""Immediate restarts of an execution that died before any worker took the line; then the sweeper's pace holds."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Kicks:
    """Starts executions for lines that nobody works on."""

    journal: Journal
    executions: Executions
    clock: Clock

    def kick(self, conversation: str, *, dead_generation: int | None = None) -> bool:
        """Starts an execution unless a worker holds the line. Returns whether one was started.

        `dead_generation`: the execution of this generation is known to have died, so its lease counts for
        nothing; a line that has moved on since is left alone.
        """
        head, now = self.journal.conversation(conversation), self.clock.now()
        if head is None or head.closed:
            return False
        if is_overdue(head, now):
            self._expire(head)
        if dead_generation is None:
            if head.line.lease_until is not None and head.line.lease_until > now:
                self.journal.lines.ring(head)
                return False  # whoever holds it looks once more before it rests
        elif head.line.generation != dead_generation or head.line.kicks >= MOST_DEAD_KICKS:
            return False
        try:
            generation = self.journal.lines.kick(head, now, dead=dead_generation is not None)
        except ConditionFailed:
            return False  # somebody else kicked it or took it
        self.executions.start(conversation, generation)
        return True

    def nudge(self, conversation: str) -> None:
        """Kicks a line that is due in any case, so that a failure costs time only."""
        try:
            self.kick(conversation)
        except (
            Exception
        ):  # what was asked for is stored: a kick that fails for whatever reason fails no answer
            # The stream tells the reactor of what was written; the sweeper finds the line in any case.
            log.exception("line %s was not kicked", conversation)

    def _expire(self, head: Conversation) -> None:
        """Stops a run at its deadline, also while a worker is busy with it: it can claim nothing more."""
        try:
            expire(self.journal, head, self.clock)
        except ConditionFailed as lost:
            # It has changed just now: whoever works on it sees the deadline itself.
            log.info("line %s was not stopped at its deadline: %s", head.id, lost)
