"""The door by itself: what it keeps, and for how long."""

import pytest
from nodus_core.access.door import Door
from nodus_core.access.door import Place as Somewhere
from nodus_core.access.limits import Limits
from nodus_core.access.permissions import is_permission
from nodus_core.access.tokens import bearer
from nodus_core.conversations.directory import Directory
from nodus_core.conversations.shelf import Shelf
from nodus_core.journal.access import Access
from nodus_core.journal.journal import Journal
from nodus_core.journal.keys import access_key
from nodus_core.journal.rates import Rates
from nodus_core.journal.store import Delete
from nodus_core.kernel.errors import Refusal
from nodus_core.testing.clock import CountingIds, FakeClock
from nodus_core.testing.memory_payloads import MemoryPayloads
from nodus_core.testing.memory_store import MemoryStore


class Place:
    def __init__(self) -> None:
        self.clock, self.store = FakeClock(), MemoryStore()
        ids = CountingIds()
        journal = Journal(self.store, ids)
        self.writer = journal.writer
        self.directory = Directory.over(Shelf(journal, MemoryPayloads(), self.clock), ids)
        self.directory.create_organization("acme")
        self.directory.create_project("acme", "web")
        self.token = self.directory.create_key("acme", "k", ["*"], ["agents:read"])
        limits = Limits(Rates(self.writer), self.clock)
        self.door = Door(Access(self.writer), self.clock, limits)


@pytest.fixture
def place() -> Place:
    return Place()


def test_a_withdrawn_key_works_no_longer_than_30_seconds(place: Place) -> None:
    key = place.door.caller(f"Bearer {place.token}", None)
    place.writer.commit("withdraw", Delete(access_key(key.token_hash)))
    place.clock.advance(29)
    assert place.door.caller(f"bearer  {place.token} ", "acme") == key
    place.clock.advance(1)
    with pytest.raises(Refusal, match="withdrawn"):
        place.door.caller(f"Bearer {place.token}", None)


def test_a_removed_project_is_gone_after_30_seconds_and_a_new_one_is_there_at_once(place: Place) -> None:
    key = place.door.caller(f"Bearer {place.token}", None)
    place.door.enter(key, "web", "agents:read")
    place.directory.projects.delete(Somewhere("acme", "", "k"), "web")
    place.door.enter(key, "web", "agents:read")
    place.clock.advance(30)
    with pytest.raises(Refusal):
        place.door.enter(key, "web", "agents:read")
    place.directory.create_project("acme", "web")
    place.door.enter(key, "web", "agents:read")


def test_a_clock_that_goes_back_ends_what_is_kept(place: Place) -> None:
    key = place.door.caller(f"Bearer {place.token}", None)
    place.writer.commit("withdraw", Delete(access_key(key.token_hash)))
    place.clock.advance(-3600)
    with pytest.raises(Refusal):
        place.door.caller(f"Bearer {place.token}", None)


def test_wrong_keys_fill_no_memory_and_each_cost_one_read(place: Place) -> None:
    reads: list[object] = []
    plain = place.store.get

    def counting(keys: object) -> object:
        reads.append(keys)
        return plain(keys)  # type: ignore[arg-type]

    place.store.get = counting  # type: ignore[method-assign,assignment]
    for number in range(50):
        with pytest.raises(Refusal):
            place.door.caller(f"Bearer nodus_{number:043}", None)
    assert len(reads) == 50
    assert place.door._keys._known == {}  # the cache is the point


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer abc", "abc"),
        ("bearer abc", "abc"),
        ("  BEARER   abc  ", "abc"),
        ("Bearer", None),
        ("Bearer ", None),
        ("abc", None),
        ("Basic abc", None),
        (None, None),
        ("Bearer " + "x" * 513, None),
    ],
)
def test_what_a_header_carries(header: str | None, token: str | None) -> None:
    assert bearer(header) == token


def test_what_cannot_be_a_token_is_not_even_looked_up(place: Place) -> None:
    def looked_up(keys: object) -> object:
        raise AssertionError(f"{keys} was read")

    place.store.get = looked_up  # type: ignore[method-assign,assignment]
    for text in ("nodus_", "nodus_short", "nodus_" + "ä" * 43, "nodus_" + "x" * 44, "x" * 49, "x" * 512):
        with pytest.raises(Refusal, match="wrong"):
            place.door.caller(f"Bearer {text}", None)


def test_permission_words() -> None:
    good = ("*", "agents:read", "agentruns:write", "sandboxes:read", "viewer", "apikeys:write")
    assert all(map(is_permission, good))
    assert not any(map(is_permission, ("", "agents", "agents:*", "agents:delete", ":read", "runs:read")))
