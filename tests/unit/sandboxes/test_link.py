"""A daemon reports a command's end: the first result stays, and only the boot that claimed it may report."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal

import pytest
from nodus_core.journal.journal import Journal
from nodus_core.journal.keys import conversation_key, sandbox_key
from nodus_core.journal.owning import placed
from nodus_core.journal.payloads import Scope
from nodus_core.journal.store import Put, Transaction
from nodus_core.journal.writer import stored
from nodus_core.kernel.errors import Refusal
from nodus_core.kernel.ids import digest
from nodus_core.kernel.objects import Conversation, Line, ObjectKey
from nodus_core.kernel.sandboxes import Command, Sandbox
from nodus_core.kernel.states import CommandState, SandboxState, TaskState
from nodus_core.kernel.text import INLINE_LIMIT, Inline, Stored, Text
from nodus_core.sandboxes.frames import MOST_PULLED_BYTES, MOST_REQUEST_BYTES
from nodus_core.sandboxes.link import Link, Pulled
from nodus_core.sandboxes.outcome import Outcome, outcome
from nodus_core.sandboxes.tools import Misuse, Order, plan
from nodus_core.testing.clock import CountingIds, FakeClock
from nodus_core.testing.memory_payloads import MemoryPayloads
from nodus_core.testing.memory_store import MemoryStore
from nodus_core.testing.memory_vault import MemoryVault
from nodus_core.testing.scripted_sandbox import exited

LENGTHS = pytest.mark.parametrize("length", [10, INLINE_LIMIT + 1], ids=["short", "long"])
SCOPE = Scope("acme", "conv")


class Desk:
    """One sandbox with one pending command, and the link that its daemon talks to."""

    def __init__(self) -> None:
        store, self.clock, self.payloads = MemoryStore(), FakeClock(), MemoryPayloads()
        self.journal = Journal(store, CountingIds())
        self.link = Link(self.journal, self.payloads, self.clock, MemoryVault())
        now = self.clock.now()
        key = ObjectKey("acme", "web", "AgentRun", "run")
        head = Conversation("conv", key, Inline("{}"), Line(1), now, Decimal(1))
        sandbox = Sandbox("s", "conv", SandboxState.RUNNING, digest("code"), now, "image")
        rows = (
            Put(stored(conversation_key("conv"), head)),
            Put(stored(sandbox_key("s"), sandbox)),
        )
        store.commit(Transaction("prepare", rows), "prepare")
        self.sandbox, self.store = sandbox, store
        self.place("c", Inline("{}"))

    def place(self, name: str, request: Text) -> None:
        now = self.clock.now()
        command = Command("s", name, "exec", request, digest("{}"), CommandState.PENDING, now)
        self.store.commit(Transaction("place", tuple(placed([command]))), f"place-{name}")

    def sees(self, name: str) -> Outcome:
        """What the command's step comes to."""
        row = self.found(name)
        assert row.result is not None
        return outcome(row.kind, self.payloads.get(SCOPE, row.result))

    def pull(self, boot: str) -> list[str]:
        return [command.id for command, _ in self.link.pull(self.sandbox, boot).commands]

    def done(self, boot: str, result: str, command: str = "c") -> None:
        self.link.done(self.sandbox, boot, command, result)

    def found(self, name: str) -> Command:
        row = self.journal.command("s", name)
        assert row is not None
        return row

    @property
    def command(self) -> Command:
        return self.found("c")

    @property
    def result(self) -> str:
        assert self.command.result is not None
        return self.payloads.get(SCOPE, self.command.result)

    @property
    def told(self) -> str:
        """What the model gets of the result: beside a short one, or in its place."""
        kept = self.command.told
        return str(outcome("exec", self.result).text) if kept is None else self.payloads.get(SCOPE, kept)


@LENGTHS
def test_the_first_result_stays_and_a_repetition_is_heard(length: int) -> None:
    desk = Desk()
    assert desk.pull("boot") == ["c"]
    desk.done("boot", json.dumps(exited("a" * length)))
    desk.done("boot", json.dumps(exited("b" * length)))
    assert desk.told == "a" * length + "\n[exit code 0]"
    whole, figures = outcome("exec", json.dumps(exited("a" * length))), outcome("exec", desk.result)
    assert replace(figures, text=desk.told) == whole
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
    long = json.dumps({"command": "r" * INLINE_LIMIT})
    desk.place("d", desk.payloads.put(SCOPE, long))
    given = desk.link.pull(desk.sandbox, "boot").commands
    assert [text for _, text in given] == ["{}", long]


def in_lambdas_answer(pulled: Pulled) -> int:
    """Bytes that API Gateway gets from Lambda, as its Python runtime writes them."""
    body = json.dumps([json.loads(request) for _, request in pulled.commands], ensure_ascii=False)
    return len(json.dumps({"statusCode": 200, "body": body}))


@pytest.mark.parametrize("character", ["a", '"', "\x01", "é", "\U0001f600"])
def test_whatever_a_model_writes_into_files_every_pull_fits_and_brings_the_next_ones(character: str) -> None:
    desk = Desk()
    content = character * (MOST_REQUEST_BYTES // len(json.dumps(json.dumps(character, ensure_ascii=False))))
    while isinstance(order := plan("write_file", arguments(content), "/w", {}), Misuse):
        content = content[: len(content) * 9 // 10]
    request = desk.payloads.put(SCOPE, json.dumps(order.request, ensure_ascii=False))
    names = [f"d{number}" for number in range(10)]
    for name in names:
        desk.place(name, request)
    had: list[str] = ["c"]
    while True:
        pulled = desk.link.pull(desk.sandbox, "boot", had)
        assert in_lambdas_answer(pulled) < 6_000_000
        had += [command.id for command, _ in pulled.commands]
        if not pulled.more:
            break
        assert pulled.commands
    assert had == ["c", *names]


def test_a_call_that_no_answer_could_carry_is_refused_and_the_model_is_told() -> None:
    short, long = "\U0001f600" * 50_000, "\U0001f600" * 100_000
    assert isinstance(plan("write_file", arguments(short), "/w", {}), Order)
    for tool, values in (
        ("write_file", {"path": "f", "content": long}),
        ("run_command", {"command": f"echo {long}"}),
        ("read_file", {"path": long}),
    ):
        refused = plan(tool, json.dumps(values), "/w", {})
        assert isinstance(refused, Misuse)
        assert f"at most {MOST_REQUEST_BYTES} are taken" in refused.text


@pytest.mark.parametrize("request_text", ["no JSON", json.dumps({"content": "a" * MOST_PULLED_BYTES})])
def test_a_command_that_cannot_be_handed_over_fails_alone(request_text: str) -> None:
    desk = Desk()
    desk.place("b", desk.payloads.put(SCOPE, request_text))
    desk.place("d", Inline("{}"))
    assert desk.pull("boot") == ["c", "d"]
    assert (desk.sees("b").state, desk.sees("b").error) == (TaskState.FAILED, "CommandFailed")
    assert desk.pull("boot") == ["c", "d"]


def test_a_command_whose_request_is_gone_fails_alone_and_is_lost_when_a_daemon_had_it() -> None:
    desk = Desk()
    for name in ("b", "d"):
        desk.place(name, Stored(digest(name), INLINE_LIMIT + 1, "{"))
    desk.journal.sandboxes.claim_command(desk.found("d"), "boot", desk.clock.now())
    assert desk.pull("boot") == ["c"]
    assert desk.found("b").state is CommandState.DONE
    assert "its request cannot be read" in desk.sees("b").text
    assert desk.found("d").state is CommandState.LOST


def test_what_the_daemon_works_on_is_not_sent_again_and_not_written_again() -> None:
    desk = Desk()
    desk.place("d", Inline("{}"))
    assert desk.pull("boot") == ["c", "d"]
    written = len(desk.store.commits)
    assert [command.id for command, _ in desk.link.pull(desk.sandbox, "boot", ["c"]).commands] == ["d"]
    assert len(desk.store.commits) == written


def test_a_pull_reads_what_is_open_and_nothing_of_what_has_ended() -> None:
    desk = Desk()
    desk.pull("boot")
    desk.done("boot", "{}")
    desk.place("d", Inline("{}"))
    desk.journal.sandboxes.withdraw_command("s", "d", desk.clock.now())
    assert desk.pull("boot") == []  # and takes the mark of the withdrawn one away
    assert list(desk.journal.open_commands("s")) == []
    assert desk.found("c").state is CommandState.DONE


def arguments(content: str) -> str:
    return json.dumps({"path": "f", "content": content})
