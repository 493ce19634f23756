"""Objects under their uid and version: a name may be another object's since it was read."""

from dataclasses import replace

import pytest
from nodus_core.journal.journal import Journal
from nodus_core.journal.keys import change_partition
from nodus_core.journal.objects import next_version
from nodus_core.kernel.errors import ConditionFailed
from nodus_core.kernel.objects import Object, ObjectKey
from nodus_core.kernel.text import Inline
from nodus_core.testing.clock import CountingIds, FakeClock
from nodus_core.testing.memory_store import MemoryStore

KEY = ObjectKey("acme", "web", "Agent", "helper")


class Kept:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.journal = Journal(MemoryStore(), CountingIds())
        self.object = Object(KEY, "uid-1", 10, 1, Inline("{}"), self.clock.now())
        self.journal.objects.create(self.object, self.clock.now())

    def log(self) -> list[str]:
        rows = self.journal.store.query(change_partition("acme", "web", "Agent")).rows
        return [row["type"] for row in rows]


def test_another_object_of_the_same_name_and_version_is_not_changed() -> None:
    kept = Kept()
    stranger = replace(kept.object, uid="uid-0")
    with pytest.raises(ConditionFailed):
        kept.journal.objects.replace(stranger, replace(stranger, version=11), kept.clock.now())
    with pytest.raises(ConditionFailed):
        kept.journal.objects.mark_deleted(stranger, kept.clock.now())
    with pytest.raises(ConditionFailed):
        kept.journal.objects.remove(stranger, kept.clock.now())
    assert kept.log() == ["ADDED"]


def test_the_end_of_an_object_is_the_last_entry_of_its_log_whatever_the_clocks_say() -> None:
    kept = Kept()
    ahead = next_version(10, kept.clock.now()) + 60_000_000
    newer = replace(kept.object, version=ahead)
    kept.journal.objects.replace(kept.object, newer, kept.clock.now())
    with pytest.raises(ConditionFailed):
        kept.journal.objects.remove(kept.object, kept.clock.now())
    kept.journal.objects.remove(newer, kept.clock.now())
    assert kept.log() == ["ADDED", "MODIFIED", "DELETED"]
