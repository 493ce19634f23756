"""A daemon reports a command's end: the first result stays, and only the boot that claimed it may report."""

from __future__ import annotations

from decimal import Decimal

import pytest
from nodus_core.journal.journal import Journal
from nodus_core.journal.keys import command_key, conversation_key, sandbox_key
from nodus_core.journal.payloads import Scope
from nodus_core.journal.store import Put, Transaction
from nodus_core.journal.writer import stored
from nodus_core.kernel.errors import Refusal
from nodus_core.kernel.ids import digest
from nodus_core.kernel.objects import Command, Conversation, Line, ObjectKey, Sandbox
from nodus_core.kernel.states import CommandState, SandboxState
from nodus_core.kernel.text import INLINE_LIMIT, Inline
from nodus_core.sandboxes.link import Link
from nodus_core.testing.clock import CountingIds, FakeClock
from nodus_core.testing.memory_payloads import MemoryPayloads
from nodus_core.testing.memory_store import MemoryStore

LENGTHS = pytest.mark.parametrize("length", [10, INLINE_LIMIT + 1], ids=["short", "long"])
SCOPE = Scope("acme", "conv")


class Desk:
    """One sandbox with one pending command, and the link that its daemon talks to."""

    def __init__(self) -> None:
        store, self.clock, self.payloads = MemoryStore(), FakeClock(), MemoryPayloads()
        self.journal = Journal(store, CountingIds())
        self.link = Link(self.journal, self.payloads, self.clock)
        now = self.clock.now()
        key = ObjectKey("acme", "web", "AgentRun", "run")
        head = Conversation("conv", key, Inline("{}"), Line(1), now, Decimal(1))
        sandbox = Sandbox("s", "conv", SandboxState.RUNNING, digest("code"), now, "image")
        command = Command("s", "c", "exec", Inline("{}"), digest("{}"), CommandState.PENDING, now)
        rows = (
            Put(stored(conversation_key("conv"), head)),
            Put(stored(sandbox_key("s"), sandbox)),
            Put(stored(command_key("s", "c"), command)),
        )
        store.commit(Transaction("prepare", rows), "prepare")
        self.sandbox = sandbox

    def pull(self, boot: str) -> list[str]:
        return [command.id for command, _ in self.link.pull(self.sandbox, boot).commands]

    def done(self, boot: str, result: str, command: str = "c") -> None:
        self.link.done(self.sandbox, boot, command, result)

    @property
    def command(self) -> Command:
        found = self.journal.command("s", "c")
        assert found is not None
        return found

    @property
    def result(self) -> str:
        assert self.command.result is not None
        return self.payloads.get(SCOPE, self.command.result)


@LENGTHS
def test_the_first_result_stays_and_a_repetition_is_heard(length: int) -> None:
    desk = Desk()
    assert desk.pull("boot") == ["c"]
    desk.done("boot", "a" * length)
    desk.done("boot", "b" * length)
    assert desk.result == "a" * length
    assert desk.pull("boot") == []


@LENGTHS
def test_a_command_that_is_not_this_boots_is_refused_and_nothing_is_kept(length: int) -> None:
    desk = Desk()
    desk.pull("boot")
    for boot, command in (("other", "c"), ("boot", "nosuch")):
        with pytest.raises(Refusal, match="not this boot's"):
            desk.done(boot, "a" * length, command)
    desk.done("boot", "mine")
    with pytest.raises(Refusal, match="not this boot's"):
        desk.done("other", "a" * length)
    assert desk.result == "mine"
    assert not desk.payloads.objects


@LENGTHS
def test_a_command_that_nobody_claimed_has_no_result(length: int) -> None:
    desk = Desk()
    with pytest.raises(Refusal, match="not this boot's"):
        desk.done("boot", "a" * length)
    assert desk.command.state is CommandState.PENDING


def test_a_long_request_is_handed_over_whole() -> None:
    desk = Desk()
    long = "r" * (INLINE_LIMIT + 1)
    request = desk.payloads.put(SCOPE, long)
    command = Command("s", "d", "exec", request, digest(long), CommandState.PENDING, desk.clock.now())
    row = Put(stored(command_key("s", "d"), command))
    desk.journal.store.commit(Transaction("place", (row,)), "place")
    given = desk.link.pull(desk.sandbox, "boot").commands
    assert [text for _, text in given] == ["{}", long]
