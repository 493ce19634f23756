"""The saved folder of a sandbox: when it is saved, what is kept, and how people see it (NOD-168 … NOD-173). Pure.

running ──10 min──► checkpoint … ──to be stopped──► a last save ──► released
                                                        └─ too long, refused: the last complete one stays
started again, or in the place of a lost one ──► restored before anything is run
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from nodus_core.kernel.sandboxes import Sandbox
from nodus_core.kernel.states import SandboxState
from nodus_core.kernel.times import stamp

EVERY = timedelta(minutes=10)
"""Between checkpoints of a folder in which something was done: what a lost machine can take along."""

WINDOW = timedelta(minutes=2)
"""What a save may take. A machine's time is always paid so far ahead, so that its last save is paid (NOD-169)."""

KEPT = 2
"""Complete saves that are kept: the last one, and the one before should it prove damaged."""

SAVED, SAVING, INCOMPLETE = "Saved", "Saving", "Incomplete"
"""`state` of `lastSave`."""

Shown = dict[str, Any]


@dataclass(frozen=True)
class Save:
    """A complete save: `name` is its archive's in the store, `at` when the folder was read, `size` the archive's.

    `left_out` counts what could not be saved; `frozen`: commands stood still meanwhile.
    """

    name: str
    at: datetime
    size: int
    sha256: str
    entries: int
    left_out: int = 0
    frozen: bool = True


@dataclass(frozen=True)
class Saving:
    """A save under way: the command that makes it, and until when it may take. `parting` is why the machine is let
    go once it has ended; None: it is a checkpoint, and the machine goes on."""

    name: str
    sandbox: str
    command: str
    at: datetime
    until: datetime
    parting: str | None = None


def is_kept(sandbox: Sandbox | None) -> bool:
    """Whether a sandbox runs whose folder is to be saved, and is there: what was saved before is restored."""
    return (
        sandbox is not None
        and sandbox.state is SandboxState.RUNNING
        and sandbox.state_dir is not None
        and sandbox.restore is None
    )


def checkpoint_at(sandbox: Sandbox, begun_at: datetime | None) -> datetime:
    """When a checkpoint is due if something was done; `begun_at` is when the last save began."""
    came_up = sandbox.started_at or sandbox.created_at
    return max(came_up, begun_at or came_up) + EVERY


def superfluous(saves: tuple[Save, ...]) -> tuple[str, ...]:
    """Names of complete saves, the newest first, that are not kept any more."""
    return tuple(save.name for save in saves[KEPT:])


def saved(save: Save) -> Shown:
    """`lastSave` of a save that is complete."""
    return {
        "state": SAVED,
        "at": stamp(save.at),
        "savedAt": stamp(save.at),
        "entries": save.entries,
        "sizeBytes": save.size,
        **({"leftOut": save.left_out} if save.left_out else {}),
        **({} if save.frozen else {"fuzzy": True}),
    }


def under_way(saves: tuple[Save, ...], at: datetime) -> Shown:
    """`lastSave` while one is made."""
    return {"state": SAVING, "at": stamp(at), **_before(saves)}


def incomplete(saves: tuple[Save, ...], at: datetime, reason: str, message: str) -> Shown:
    """`lastSave` of a save that was not completed: what was saved before stays what is restored."""
    return {"state": INCOMPLETE, "at": stamp(at), "reason": reason, "message": message, **_before(saves)}


def _before(saves: tuple[Save, ...]) -> Shown:
    return {"savedAt": stamp(saves[0].at)} if saves else {}
