"""Who may write: the conditions that keep a worker that woke too late from writing anything."""

from dataclasses import dataclass

from nodus_core.journal.store import Both, Condition, Equals
from nodus_core.kernel.ids import MAIN


@dataclass(frozen=True)
class Fence:
    """One worker's hold on one branch of a conversation: its generation and its claimant id."""

    conversation: str
    generation: int
    claimant: str
    branch: str = MAIN

    @property
    def on_conversation(self) -> Condition:
        """Holds in the conversation's head while this worker owns the line."""
        return Both(
            (Equals("line.generation", self.generation), Equals("line.claimant", self.claimant)),
        )

    @property
    def on_run(self) -> Condition:
        """Holds in the run's head while this worker owns the branch."""
        return Both(
            (
                Equals(f"lines.{self.branch}.generation", self.generation),
                Equals(f"lines.{self.branch}.claimant", self.claimant),
            ),
        )
