"""Asks: answered once, bounded, forgotten; a machine that does not run is never asked."""

import json
from typing import Any

import pytest
from nodus_core.conversations.asking import WAIT_S, Answer, Asking, Question
from nodus_core.journal.asks import PLACES
from nodus_core.journal.journal import Journal
from nodus_core.journal.keys import sandbox_key
from nodus_core.journal.sandboxes import Greeting
from nodus_core.journal.store import Put, Transaction
from nodus_core.journal.writer import stored
from nodus_core.kernel.errors import NodusError, Refusal, StoreUnavailable
from nodus_core.kernel.ids import digest
from nodus_core.kernel.sandboxes import Ask, Sandbox
from nodus_core.kernel.states import SandboxState
from nodus_core.sandboxes.link import MOST_ANSWER_BYTES, Link
from nodus_core.testing.clock import CountingIds, FakeClock
from nodus_core.testing.crash import CrashOnce
from nodus_core.testing.memory_payloads import MemoryPayloads
from nodus_core.testing.memory_store import MemoryStore
from nodus_core.testing.memory_vault import MemoryVault

WHAT = Question("list", {"path": "/"})


class Machine:
    """A sandbox that runs, somebody who asks it, and a daemon that pulls whenever time passes."""

    def __init__(self, crash: CrashOnce | None = None) -> None:
        self.store, self.clock, self.ids = MemoryStore(), FakeClock(), CountingIds()
        self.journal = Journal(self.store, self.ids)
        self.link = Link(self.journal, MemoryPayloads(), self.clock, MemoryVault())
        self.row = Sandbox(
            "s", "conv", SandboxState.RUNNING, digest("c"), self.clock.now(), "image", connection="one"
        )
        self.put(self.row)
        self.asking = Asking(Journal(self.store, self.ids, crash), self, self.clock)
        self.rung: list[str] = []
        self.given: list[Ask] = []
        self.answers: list[Any] = []
        self.clock.sleep = self.sleep  # type: ignore[method-assign]

    def put(self, row: Sandbox) -> None:
        put = Put(stored(sandbox_key("s"), row))
        self.store.commit(Transaction("put", (put,)), self.ids.fresh("put"))

    def ring(self, connection: str) -> bool:
        self.rung.append(connection)
        return True

    def sleep(self, seconds: float) -> None:
        self.clock.advance(seconds)
        for ask in self.link.pull(self.row, "boot").asks:
            self.given.append(ask)
            if self.answers and (answer := self.answers.pop(0)) is not None:
                self.link.answered(self.row, ask.id, json.dumps(answer))

    def ask(self, question: Question = WHAT) -> Answer:
        return self.asking.ask("mine", self.row, question)

    def refused(self, question: Question = WHAT) -> Refusal:
        with pytest.raises(Refusal) as refused:
            self.ask(question)
        return refused.value

    def left(self) -> list[str]:
        return [key.sk for key in self.store.rows() if key.pk == "ask#s"]


def test_an_ask_is_given_to_the_daemon_answered_and_forgotten() -> None:
    machine = Machine()
    machine.answers = [{"state": "exited", "entries": []}]
    assert machine.ask() == {"state": "exited", "entries": []}
    assert [(ask.kind, json.loads(ask.request)) for ask in machine.given] == [("list", {"path": "/"})]
    assert machine.rung == ["one"]
    assert machine.left() == []
    row = machine.journal.sandbox("s")
    assert row is not None
    assert row.worked_at == machine.clock.now() or row.worked_at is not None


def test_one_that_is_no_work_leaves_the_sandbox_as_idle_as_it_was() -> None:
    machine = Machine()
    machine.answers = [{"state": "exited"}]
    machine.ask(Question("usage", {}, works=False))
    assert machine.journal.sandbox("s") == machine.row


def test_a_lost_answer_to_a_pull_loses_nothing_and_the_first_answer_stays() -> None:
    machine = Machine()
    machine.answers = [None, None, {"state": "exited", "n": 1}]
    assert machine.ask()["n"] == 1
    assert len({ask.id for ask in machine.given}) == 1
    machine.link.answered(machine.row, machine.given[0].id, '{"n": 2}')  # once more, after it was taken
    assert machine.left() == []


def test_a_daemon_that_says_nothing_is_told_so_and_the_place_is_free_again() -> None:
    machine = Machine()
    before = machine.clock.now()
    refused = machine.refused()
    assert (refused.reason, refused.retry_after) == ("ServiceUnavailable", 1)
    assert 0 <= (machine.clock.now() - before).total_seconds() - WAIT_S < 1
    assert machine.left() == []


def test_a_machine_that_stops_is_not_waited_for() -> None:
    machine = Machine()
    machine.put(Sandbox("s", "conv", SandboxState.RELEASING, digest("c"), machine.clock.now(), "image"))
    assert machine.refused().reason == "SandboxNotRunning"
    assert machine.left() == []
    other = Machine()
    stop = other.sleep

    def stops(seconds: float) -> None:
        stop(seconds)
        other.put(Sandbox("s", "conv", SandboxState.GONE, digest("c"), other.clock.now(), "image"))

    other.clock.sleep = stops  # type: ignore[method-assign]
    assert other.refused().reason == "SandboxNotRunning"
    assert other.left() == []


def test_a_flood_is_bounded_and_what_nobody_took_ends_by_itself() -> None:
    machine = Machine()

    def unheard(seconds: float) -> None:
        raise StoreUnavailable("the one who asks is cut off")

    machine.clock.sleep = unheard  # type: ignore[method-assign]
    for _ in range(PLACES):
        with pytest.raises(StoreUnavailable):
            machine.ask()
    refused = machine.refused()
    assert (refused.reason, refused.retry_after) == ("TooManyRequests", 1)
    assert len(machine.link.pull(machine.row, "boot").asks) == PLACES
    machine.clock.advance(WAIT_S + 1)
    assert machine.link.pull(machine.row, "boot").asks == ()
    machine.clock.sleep = machine.sleep  # type: ignore[method-assign]
    machine.answers = [{"state": "exited"}]
    assert machine.ask()["state"] == "exited"


def test_one_that_may_wait_gets_the_first_of_its_places_that_is_free() -> None:
    machine = Machine()
    sleep = machine.sleep
    machine.clock.sleep = lambda seconds: (_ for _ in ()).throw(StoreUnavailable("gone"))  # type: ignore[method-assign]
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            machine.ask(Question("http", {}, places=2))
    machine.clock.sleep = sleep  # type: ignore[method-assign]
    before = machine.clock.now()
    for patience, waited in ((0, 0), (1, 1)):
        refused = machine.refused(Question("http", {}, places=2, patience_s=patience))
        assert (refused.reason, "2 questions" in refused.message) == ("TooManyRequests", True)
        assert waited <= (machine.clock.now() - before).total_seconds() < waited + 1
    had = {ask.id for ask in machine.given}
    assert len(had) == 2

    def answers_the_third(seconds: float) -> None:
        sleep(seconds)
        if {ask.id for ask in machine.given} - had:
            machine.answers = [{"state": "exited", "third": True}]

    machine.clock.sleep = answers_the_third  # type: ignore[method-assign]
    assert machine.ask(Question("http", {}, places=2, patience_s=30))["third"]
    assert (machine.clock.now() - before).total_seconds() >= WAIT_S


def test_the_bell_is_rung_again_where_the_daemon_connects_meanwhile_and_may_fail() -> None:
    machine = Machine()
    sleep = machine.sleep

    def reconnects(seconds: float) -> None:
        machine.journal.sandboxes.attach("s", "two", machine.clock.now())
        sleep(seconds)

    machine.clock.sleep = reconnects  # type: ignore[method-assign]
    machine.answers = [None, {"state": "exited"}]
    machine.ask()
    assert machine.rung == ["one", "two"]

    def broken(connection: str) -> bool:
        raise StoreUnavailable("no bell")

    object.__setattr__(machine.asking, "bell", type("Broken", (), {"ring": staticmethod(broken)})())
    machine.clock.sleep = sleep  # type: ignore[method-assign]
    machine.answers = [{"state": "exited"}]
    assert machine.ask()["state"] == "exited"


def test_what_no_daemon_should_say_harms_nobody() -> None:
    machine = Machine()
    machine.answers = [{"state": "exited", "x": "\ud800"}]
    assert machine.ask()["x"] in ("?", "\ud800")
    with pytest.raises(Refusal, match="at most"):
        machine.link.answered(machine.row, "ask-00-" + "0" * 32, "x" * (MOST_ANSWER_BYTES + 1))
    for name in ("ask-00-" + "0" * 32, "ask-99-" + "0" * 32, "u-1"):
        machine.link.answered(machine.row, name, "{}")
    assert machine.left() == []


def test_requests_that_do_not_fit_together_come_with_the_next_pull() -> None:
    machine = Machine()
    machine.clock.sleep = lambda seconds: (_ for _ in ()).throw(StoreUnavailable("gone"))  # type: ignore[method-assign]
    for _ in range(PLACES):
        with pytest.raises(StoreUnavailable):
            machine.ask(Question("write", {"content": "x" * 250_000}))
    first = machine.link.pull(machine.row, "boot")
    assert first.more
    had = {ask.id for ask in first.asks}
    second = machine.link.pull(machine.row, "boot", had)
    assert not second.more
    assert len(had | {ask.id for ask in second.asks}) == PLACES


def test_a_greeting_is_not_disturbed_by_what_is_asked() -> None:
    """A daemon that comes up again is given what is asked and not answered: no boot has claimed it."""
    machine = Machine()
    machine.clock.sleep = lambda seconds: (_ for _ in ()).throw(StoreUnavailable("gone"))  # type: ignore[method-assign]
    with pytest.raises(NodusError):
        machine.ask()
    machine.put(Sandbox(**{**vars(machine.row), "token_hash": digest("t")}))
    machine.journal.sandboxes.reboot("s", Greeting("boot-2", digest("t"), guard="network"))
    assert len(machine.link.pull(machine.row, "boot-2").asks) == 1
