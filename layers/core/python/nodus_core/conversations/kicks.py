"""Kicks: telling a line to look. Each may be lost, late or doubled; the sweeper makes up for it."""

from dataclasses import dataclass

from nodus_core.journal.journal import Journal
from nodus_core.journal.ports import Clock, Executions
from nodus_core.kernel.errors import ConditionFailed


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
        head = self.journal.conversation(conversation)
        if head is None or (head.ended and head.sandbox is None and head.line.lease_until is None):
            return False
        if dead_generation is not None and head.line.generation != dead_generation:
            return False
        try:
            generation = self.journal.lines.kick(head, self.clock.now(), dead=dead_generation is not None)
        except ConditionFailed:
            return False  # somebody else kicked it, or a worker holds it and will look by itself
        self.executions.start(conversation, generation)
        return True
