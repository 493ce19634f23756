"""What a daemon is asked to do with the saved folder, and what it says of it (docs/protocols.md §2)."""

import json
from dataclasses import dataclass

from nodus_core.kernel.saving import Save
from nodus_core.kernel.text import cut
from nodus_core.sandboxes.tools import Order

SAVE, RESTORE = "save", "restore"
"""Kinds of commands that the line itself gives."""

MOST_BYTES = 10 << 30
MOST_ARCHIVE_BYTES = 4 << 30
MOST_ENTRIES = 250_000
MOST_DEPTH = 100
"""Limits of a saved folder: its files together, its archive (one PUT takes 5 GB), its entries, its depth."""

MOST_MESSAGE = 500
"""Bytes of what a daemon says of a failure."""

REFUSED = ("damaged", "hostile", "too_large")
"""Reasons of a restore that lie in the archive itself: no further try would change them."""

DAMAGED = (*REFUSED, "mismatch")
"""Those, and an archive that is not the one that was stored: that save is no use."""

_LIMITS = {"maxBytes": MOST_BYTES, "maxEntries": MOST_ENTRIES, "maxDepth": MOST_DEPTH}


@dataclass(frozen=True)
class Told:
    """What became of a save: its archive's figures, and what was left out of it."""

    size: int
    sha256: str
    entries: int
    left_out: int
    frozen: bool


@dataclass(frozen=True)
class NotDone:
    """A folder was not saved, or not restored."""

    reason: str
    message: str


def save_order(path: str, url: str, seconds: int) -> Order:
    """Save a folder, within so many seconds."""
    limits = {**_LIMITS, "maxArchiveBytes": MOST_ARCHIVE_BYTES}
    return Order(SAVE, {"path": path, "put": url, "timeoutS": seconds, **limits})


def restore_order(path: str, url: str, save: Save, seconds: int) -> Order:
    """Fill a folder from a save. Its links may lead anywhere, as they did: a virtual environment has such."""
    facts = {"size": save.size, "sha256": save.sha256, "outerLinks": True}
    return Order(RESTORE, {"path": path, "get": url, "timeoutS": seconds, **facts, **_LIMITS})


def saved(result: str) -> Told | NotDone:
    """What the daemon's JSON says of a save; figures that cannot be are no save."""
    values = _fields(result)
    if values.get("state") != "exited":
        return _not_done(values)
    size, sha256, entries = _count(values, "size"), values.get("sha256"), _count(values, "entries")
    if size is not None and size > MOST_ARCHIVE_BYTES:
        return NotDone("too_large", "The sandbox's daemon stored more than a saved folder may have.")
    if size is None or entries is None or not isinstance(sha256, str) or len(sha256) != 64:
        return NotDone("invalid", "The sandbox's daemon said nothing usable of the archive.")
    return Told(size, sha256, entries, _count(values, "leftOutCount") or 0, values.get("frozen") is True)


def restored(result: str) -> NotDone | None:
    """Why the folder is not there; None: it is."""
    values = _fields(result)
    return None if values.get("state") == "exited" else _not_done(values)


def _not_done(values: dict[str, object]) -> NotDone:
    reason, message = values.get("reason"), values.get("message")
    return NotDone(
        cut(reason, 64) if isinstance(reason, str) else "unknown",
        cut(message, MOST_MESSAGE) if isinstance(message, str) else "The sandbox's daemon gave no reason.",
    )


def _count(values: dict[str, object], name: str) -> int | None:
    value = values.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53 else None


def _fields(result: str) -> dict[str, object]:
    try:
        values = json.loads(result)
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}
