"""What ECS says of a task, as a report of ours."""

from collections.abc import Mapping
from typing import Any

from nodus_core.aws.task_times import began_of
from nodus_core.journal.ports import TaskPhase, TaskReport
from nodus_core.kernel.errors import TerminalError

_PHASES: dict[str, TaskPhase] = {
    "PROVISIONING": "pending",
    "PENDING": "pending",
    "ACTIVATING": "pending",
    "RUNNING": "running",
    # Its containers may still be running: nobody may count on its end before it is there.
    "DEACTIVATING": "running",
    "STOPPING": "running",
    "DEPROVISIONING": "stopped",
    "STOPPED": "stopped",
    "DELETED": "stopped",
}


def report_of(task: str, described: Mapping[str, Any] | None) -> TaskReport:
    """The report of a task by its description; None: ECS knows no such task. Raises `TerminalError`."""
    if described is None:
        return TaskReport("missing")
    status = str(described.get("lastStatus", ""))
    phase = _PHASES.get(status)
    if phase is None:
        raise TerminalError(f"task {task} has the status {status!r}, which this release does not know")
    reason = described.get("stoppedReason") or described.get("stopCode")
    began = began_of(described)
    if phase != "stopped":
        return TaskReport(phase, began=began)
    return TaskReport(phase, str(reason) if reason else None, described.get("stoppedAt"), began)
