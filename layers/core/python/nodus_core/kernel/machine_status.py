"""`status` of a Sandbox: a projection of its line, written when its machine comes, stops and goes (NODQ-66).

That of a run's sandbox is written by the run's line, and ends with `Deleted`: it is never started again.

Each function takes the status as it is and returns the next one; none reads anything else.
"""

from decimal import Decimal

from nodus_core.kernel.machines import COST_REACHED, IDLE, LOST, START_FAILED, STOPPED, UNPAID
from nodus_core.kernel.projection import DELETED, Status, conditions, dollars, image_of, restored
from nodus_core.kernel.sandboxes import Sandbox
from nodus_core.kernel.states import SandboxState
from nodus_core.kernel.times import stamp

PENDING, RUNNING, PAUSED = "Pending", "Running", "Paused"

WAITS = {
    STOPPED: "It was asked to stop. Start it again with: nodus start sandbox/{name}",
    IDLE: "Nothing was done in it for its idleTimeout. Start it again with: nodus start sandbox/{name}",
    COST_REACHED: "Its time has cost its maxCostUSD, so it cannot be started again. Make a new one.",
    UNPAID: (
        "A Budget of the project does not cover the next period of its time. Raise its limitUSD, then start the "
        "sandbox again with: nodus start sandbox/{name}"
    ),
}

STOPPING = "Stopping"
"""Reason of a machine that runs and is being stopped."""

RELEASED = "Released"
"""Reason of a run's sandbox that its run has let go of (NOD-418)."""

_RELEASED = "The run has let go of it, and its files are gone with it. The history of its commands stays with the run."

_GIB = 1024**3

_OF_A_PAUSE = ("reason", "message")


def made(cpu: str, memory: str, gpus: int = 0) -> Status:
    """A Sandbox that was made just now; `cpu` in processors, `memory` in GiB."""
    size = {"cpu": cpu, "memory": memory, **({"gpu": gpus} if gpus else {})}
    return {"phase": PENDING, "starts": 0, "costUSD": "0", "resources": size}


def starting(status: Status) -> Status:
    """It was asked to start."""
    return {**_plain(status), "phase": PENDING}


def stopping(status: Status) -> Status:
    """It was asked to stop, and is not gone yet."""
    return {**_plain(status), "reason": STOPPING}


def requested(status: Status, sandbox: Sandbox, starts: int) -> Status:
    """A machine is asked for."""
    return {**_plain(status), "phase": PENDING, "starts": starts, "machine": sandbox.id, **image_of(sandbox)}


def running(status: Status, sandbox: Sandbox) -> Status:
    """Its daemon has come up, and its saved folder is there."""
    shown = {**_plain(status), "phase": RUNNING, "machine": sandbox.id, "conditions": conditions(sandbox)}
    return {**shown, **restored(sandbox)}


def paused(status: Status, reason: str, name: str, message: str | None = None) -> Status:
    """Nothing runs of the Sandbox of that name; `message` is what is known beyond the reason."""
    shown = {
        key: value
        for key, value in _plain(status).items()
        if key not in ("machine", "conditions", "restoredFrom")
    }
    said = WAITS.get(reason, reason).format(name=name)
    if message:
        said = f"{message.rstrip('.')}. Start it again with: nodus start sandbox/{name}"
    saved_at = status.get("lastSave", {}).get("savedAt")
    if saved_at and reason != COST_REACHED:
        said = f"{said.rstrip('.')}. The next start restores its folder as it was saved at {saved_at}."
    return {**shown, "phase": PAUSED, "reason": reason, "message": said}


def released(status: Status, sandbox: Sandbox, reason: str) -> Status:
    """A run's sandbox is gone for good; what its daemon or provider said last stands in `message`."""
    shown = {key: value for key, value in _plain(status).items() if key != "machine"}
    message = _RELEASED if reason == RELEASED else sandbox.reason or reason
    return {**shown, "phase": DELETED, "reason": reason, "message": message}


def why_released(sandbox: Sandbox, *, ended: bool) -> str:
    """Why a run's sandbox is gone; `ended`: its run takes no input any more."""
    if ended:
        return RELEASED
    if sandbox.parting:
        return sandbox.parting
    return LOST if sandbox.token_hash else START_FAILED


def as_reported(status: Status, sandbox: Sandbox, *, ended: bool) -> Status:
    """A run's sandbox as its row is now, which may be ahead of what its line has shown (NOD-408)."""
    if status.get("phase") == DELETED:
        return status
    match sandbox.state:
        case SandboxState.REQUESTED:
            return status
        case SandboxState.RUNNING:
            return running(status, sandbox)
        case SandboxState.RELEASING:
            return stopping(status)
        case SandboxState.GONE:
            return released(status, sandbox, why_released(sandbox, ended=ended))


def using(status: Status, sandbox: Sandbox | None) -> Status:
    """What a machine that runs uses, by its daemon's word (NOD-407, NOD-416)."""
    used = None if sandbox is None else sandbox.used
    if used is None or status.get("phase") != RUNNING:
        return status
    usage = {
        "cpuSeconds": used.cpu_s,
        "memoryBytes": used.memory,
        "diskBytes": used.disk,
        "diskSizeBytes": used.disk_size,
        "at": stamp(used.at),
    }
    return {**status, "usage": usage, "disk": f"{_gib(used.disk)}/{_gib(used.disk_size)}"}


def _gib(size: int) -> str:
    return f"{size / _GIB:.1f}Gi"


def costing(status: Status, compute: Decimal) -> Status:
    """What its time has cost until now."""
    return {**status, "costUSD": dollars(compute)}


def _plain(status: Status) -> Status:
    return {key: value for key, value in status.items() if key not in _OF_A_PAUSE}
