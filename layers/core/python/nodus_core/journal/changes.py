"""The change log: an entry for each change of an object, written in the commit of the change (decision 2).

A position in it is a resourceVersion. Writers' clocks differ, and an entry becomes visible some time after its
version was made: whoever has read up to a position may have missed entries of the last `OVERLAP` before it.
A *settled* position is one before which nothing can be missing any more: lists and bookmarks hand these out. They
are whole milliseconds, which the version of an object never is, so each kind of position is known by itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from nodus_core.journal.keys import change_key, change_partition, changes_behind
from nodus_core.journal.store import Put, Row, Store
from nodus_core.kernel.objects import Object

CHANGE_LOG_TTL = timedelta(hours=1)
"""How long a watch can be taken up again; older positions answer 410."""

OVERLAP = 10_000_000
"""Microseconds that an entry may become visible later than its version says, clocks' differences included."""

COMMIT_WITHIN_S = 3.0
"""Seconds after its first attempt in which a commit with an entry begins another one.

An attempt takes 5 s at most (`aws.dynamodb_wire`); the rest of `OVERLAP` is for clocks.
"""

MOST_CHANGES = 10_000
"""Entries of one reading of the log."""

_STEP = 1000


@dataclass(frozen=True)
class Change:
    """One entry. `version` is the object's since this change.

    `labels` and `fields` are what is known of the object as it was before the change (`labels` None: nothing);
    a field that is not there is not known. `cells` is what tables showed of an object that is gone, by column.
    """

    type: str
    name: str
    uid: str
    version: int
    labels: dict[str, str] | None = None
    fields: dict[str, str] = field(default_factory=dict[str, str])
    cells: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def id(self) -> tuple[int, str, str]:
        """What tells entries of one kind apart."""
        return self.version, self.name, self.uid


def next_version(old: int, now: datetime) -> int:
    """The next resourceVersion: microseconds since 1970, always more than the one before, never a settled position."""
    version = max(old + 1, micros(now))
    return version + 1 if is_settled(version) else version


def micros(now: datetime) -> int:
    return int(now.timestamp() * 1_000_000)


def is_settled(position: int) -> bool:
    """Whether everything up to this position is known to whoever was given it."""
    return position % _STEP == 0


def settled(read_at: datetime) -> int:
    """The last settled position of somebody who begins to read at this moment."""
    return (micros(read_at) - OVERLAP) // _STEP * _STEP


def floor(position: int) -> int:
    """Behind which version of the log somebody must read on who has come to this position."""
    return position if is_settled(position) else max(position - OVERLAP, 0)


def is_kept(position: int, now: datetime) -> bool:
    """Whether the log still holds everything behind a position."""
    oldest = micros(now - CHANGE_LOG_TTL)
    return floor(position) >= oldest + OVERLAP


# --- writing ----------------------------------------------------------------------------------------------


def added(obj: Object, now: datetime) -> Put:
    return Put(_row(obj, "ADDED", now))


def modified(obj: Object, now: datetime, was: Object | None = None) -> Put:
    """`was`: the object as it was, where the commit makes sure of that; else its labels and its status may be another's."""
    if was is None:
        return Put({**_row(obj, "MODIFIED", now), "labels": obj.labels, "fields": dict(obj.selectable)})
    return Put({**_row(obj, "MODIFIED", now), "labels": was.labels, "fields": facts(was)})


def deleted(obj: Object, was: Object, now: datetime, cells: Mapping[str, Any]) -> Put:
    """`cells`: what tables showed of it at last."""
    row = {**_row(obj, "DELETED", now), "labels": was.labels, "fields": facts(was)}
    return Put({**row, "cells": dict(cells)} if cells else row)


def facts(obj: Object) -> dict[str, str]:
    """Fields by which an object may be selected, as far as its row holds them."""
    return {
        "status.phase": str(obj.status.get("phase", "")),
        "status.reason": str(obj.status.get("reason", "")),
        **obj.selectable,
    }


def _row(obj: Object, kind: str, now: datetime) -> Row:
    key = change_key(obj.key, obj.version)
    return {
        "pk": key.pk,
        "sk": key.sk,
        "type": kind,
        "name": obj.key.name,
        "uid": obj.uid,
        "version": obj.version,
        "ttl": int((now + CHANGE_LOG_TTL).timestamp()),
    }


# --- reading ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reading:
    """Entries in the order of their versions; `whole` says that they reach to the log's end."""

    changes: tuple[Change, ...]
    whole: bool


def read_changes(store: Store, org: str, project: str, kind: str, behind: int) -> Reading:
    """What the log of a kind holds behind a version, `MOST_CHANGES` entries at most."""
    found: list[Change] = []
    after: str | None = changes_behind(behind)
    while after is not None and len(found) < MOST_CHANGES:
        page = store.query(change_partition(org, project, kind), after=after)
        found += map(_change, page.rows)
        after = page.after
    return Reading(tuple(found), whole=after is None)


def _change(row: Row) -> Change:
    return Change(
        row["type"],
        row["name"],
        row["uid"],
        row["version"],
        row.get("labels"),
        row.get("fields", {}),
        row.get("cells", {}),
    )
