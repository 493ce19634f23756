"""Kicks: telling a line to look. Each may be lost, late or doubled; the sweeper makes up for it."""

from dataclasses import dataclass

from nodus_core.journal.journal import Journal
from nodus_core.journal.ports import Clock, Executions
from nodus_core.kernel.errors import ConditionFailed

MOST_DEAD_KICKS = 2
"""Immediate restarts of an execution that died before any worker took the line; then the sweeper's pace holds."""


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
