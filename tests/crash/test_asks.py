"""Whoever asks a sandbox, and the link that answers, die at every commit: nothing stays, and asking again works."""

import pytest
from nodus_core.conversations.asking import WAIT_S
from nodus_core.journal.journal import Journal
from nodus_core.sandboxes.link import Link
from nodus_core.testing.crash import Crash, CrashOnce
from nodus_core.testing.memory_payloads import MemoryPayloads
from nodus_core.testing.memory_vault import MemoryVault

from tests.unit.conversations.test_asking import Machine


def test_a_crash_at_any_commit_leaves_nothing_that_stays() -> None:
    passed = CrashOnce()
    machine = Machine(passed)
    machine.answers = [{"state": "exited"}]
    machine.ask()
    assert {point.partition(".")[0] for point in passed.passed} == {"place-ask", "take-answer"}
    for point in passed.passed:
        died = Machine(CrashOnce(point))
        died.answers = [{"state": "exited"}]
        with pytest.raises(Crash):
            died.ask()
        died.clock.advance(WAIT_S + 1)
        assert died.link.pull(died.row, "boot").asks == (), point
        died.answers = [{"state": "exited", "again": True}]
        assert died.ask()["again"], point
    daemon = Machine()
    for point in ("answer-ask.before", "answer-ask.after"):
        link = Link(
            Journal(daemon.store, daemon.ids, CrashOnce(point)), MemoryPayloads(), daemon.clock, MemoryVault()
        )
        daemon.link, daemon.answers = link, [{"state": "exited"}] * 2

        def dies(seconds: float) -> None:
            try:
                daemon.sleep(seconds)
            except Crash:
                return

        daemon.clock.sleep = dies  # type: ignore[method-assign]
        assert daemon.ask() == {"state": "exited"}, point
    assert daemon.left() == []
