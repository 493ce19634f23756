"""The team view: how a run stands, what can be done with it, and what its subagents do (NOD-247, NOD-248).

Nothing of it is stored. A run without subagents has a team of none: no items, nothing verified.
"""

from dataclasses import dataclass
from typing import Any

from nodus_core.access.door import Place
from nodus_core.conversations.reading import Reading
from nodus_core.kernel import projection
from nodus_core.kernel.objects import AGENT_RUN
from nodus_core.resources.kinds import API_VERSION

COUNTS = ("total", "queued", "active", "completed", "failed", "cancelled", "needsResolution")
"""What is counted of the tasks (NODQ-53)."""

_MESSAGES = {
    "Queued": "The run has not begun yet.",
    "Running": "The run is at work.",
    "Succeeded": "The run has ended; its answer can be read.",
    "Failed": "The run has failed.",
    "Cancelled": "The run was cancelled.",
}


@dataclass(frozen=True)
class Team:
    """Reads of team views."""

    reading: Reading

    def view(self, place: Place, name: str) -> dict[str, Any]:
        """The team view of a run. Raises `Refusal` `NotFound`."""
        run = self.reading.object(place, AGENT_RUN, name)
        return {
            "apiVersion": API_VERSION,
            "kind": "Team",
            "metadata": {"name": name, "namespace": place.project},
            "summary": summary(run["status"]),
            "items": [],
            "verification": {"state": "NotVerified"},
        }


def summary(status: dict[str, Any]) -> dict[str, Any]:
    """How a run with this status stands, in words, and what a person can do next."""
    phase, reason = status.get("phase", "Queued"), status.get("reason")
    return {
        "state": phase,
        "message": _message(phase, reason, status.get("message")),
        "action": action(status),
        "counts": dict.fromkeys(COUNTS, 0),
        "peakParallelModelCalls": 0,
    }


def action(status: dict[str, Any]) -> str:
    """What a person can do with a run: the word of NOD-248."""
    match status.get("phase"):
        case "Succeeded":
            return "ViewAnswer"
        case "Failed":
            return "InspectRun"
        case "Waiting" if projection.awaits_message(status):
            return "SendMessage"
        case "Waiting" if status.get("reason") == "NeedsResolution":
            return "InspectRun"
        case _:
            return "None"


def _message(phase: str, reason: str | None, said: str | None) -> str:
    if phase == "Waiting":
        begin = "The run waits for a message." if reason == "MessageWait" else f"The run waits: {reason}."
    else:
        begin = _MESSAGES[phase]
    return f"{begin} {said}" if said else begin
