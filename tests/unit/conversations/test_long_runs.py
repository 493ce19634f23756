"""Runs that grow: beyond the model's window, to the journal's last step, and at the same cost from first to last."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from nodus_core.access.door import Place
from nodus_core.conversations.context import Context, ModelChoice
from nodus_core.conversations.shelf import Shelf
from nodus_core.conversations.stepping import Stepping
from nodus_core.conversations.worker import Worker
from nodus_core.inference.errors import ContextTooLong
from nodus_core.inference.exchange import AssistantMessage, ModelRequest, ToolResults, Usage
from nodus_core.inference.pricing import cost
from nodus_core.inference.window import LEFT_OUT
from nodus_core.inference.wires import encode_request
from nodus_core.journal.store import Key, Page, Row, Transaction
from nodus_core.kernel import decide
from nodus_core.kernel.decide import MOST_STEPS, RESERVED_STEPS
from nodus_core.kernel.money import ZERO
from nodus_core.testing.memory_store import MemoryStore
from nodus_core.testing.scripted_model import Step, says, target
from nodus_core.testing.scripted_sandbox import exited
from nodus_core.testing.world import NAMES, World

CONTEXT = Context(
    "agent", 1, "You are careful.", ModelChoice("OnDemand", "vendor/model"), max_tool_calls=20_000
)
WINDOW = 20_000
"""Tokens; the scripted model counts four bytes as one."""

ROUND = 120
"""Steps of a round in the longest run: a model call and its commands."""


def status(world: World) -> dict[str, Any]:
    obj = world.outside.object(NAMES)
    assert obj is not None
    return obj.status


def long_run(rounds: int, *, window: int | None, refuses: bool = True, output: int = 4000) -> World:
    """Rounds of one command each with an output of so many bytes, then an answer."""

    def script(request: ModelRequest, number: int) -> Step:
        tokens = len(encode_request(request)) // 4
        if tokens > WINDOW and refuses:
            return ContextTooLong("prompt is too long", 400)
        usage = Usage(tokens, 10)
        if number == rounds:
            return says("done", usage=usage)
        return says(f"round {number}", ("run_command", {"command": str(number)}), usage=usage)

    world = World(script, lambda kind, request: exited(request["command"] + "x" * output))
    world.models.target = lambda choice, family: replace(  # type: ignore[method-assign]
        target("sonnet"), context_window=window
    )
    world.admit(context=CONTEXT, cap="1000")
    return world


@pytest.mark.req("FLD-07", "FLD-02")
def test_a_conversation_that_outgrows_its_window_goes_on_without_its_oldest_results() -> None:
    world = long_run(100, window=WINDOW)
    world.settle()
    assert status(world)["phase"] == "Succeeded"
    assert len(world.models.requests) == 101  # none was refused: the window is looked at before it is full
    last = world.models.requests[-1].messages
    texts = [m.results[0].text for m in last if isinstance(m, ToolResults)]
    assert texts[0] == LEFT_OUT
    assert texts[-1].startswith("99x")
    assert len([m for m in last if isinstance(m, AssistantMessage)]) == 100


@pytest.mark.req("FLD-07")
def test_what_is_left_out_changes_in_big_strides_so_that_caches_hold() -> None:
    world = long_run(100, window=WINDOW)
    world.settle()
    counts = [str(request.messages).count(LEFT_OUT) for request in world.models.requests]
    strides = [count for count, before in zip(counts[1:], counts, strict=False) if count != before]
    assert counts == sorted(counts)
    assert len(strides) <= 20
    assert all(later - earlier >= 4 for earlier, later in pairwise(strides))


@pytest.mark.req("FLD-07")
def test_a_model_whose_window_nobody_knows_says_itself_when_it_is_full() -> None:
    world = long_run(60, window=None)
    world.settle()
    assert status(world)["phase"] == "Succeeded"
    refused = len(world.models.requests) - 61
    assert 0 < refused < 8
    spent = world.outside.conversation("conv")
    assert spent is not None
    tokens = [len(encode_request(request)) // 4 for request in world.models.requests]
    fitting = [number for number in tokens if number <= WINDOW]
    # Refusals cost nothing.
    assert spent.spent == Decimal(sum(fitting) + 20 * len(fitting)) / 1_000_000


@pytest.mark.req("FLD-07", "INV-16")
def test_a_prompt_that_no_window_holds_ends_the_run_by_its_own_reason() -> None:
    world = World(lambda request, number: ContextTooLong("prompt is too long: 300000 tokens > 200000", 400))
    world.admit(context=CONTEXT)
    world.settle()
    assert (status(world)["phase"], status(world)["reason"]) == ("Failed", "ContextWindowExceeded")
    assert "300000 tokens" in status(world)["message"]
    assert len(world.models.requests) == 1
    assert status(world)["cost"]["totalUSD"] == "0"


@pytest.mark.req("FLD-07", "NOD-074")
def test_a_new_worker_seals_the_same_requests() -> None:
    """Every step by a worker of its own, which knows the journal only."""
    undisturbed = long_run(40, window=WINDOW)
    undisturbed.settle()
    world = long_run(40, window=WINDOW)
    for _ in range(400):
        if not world.executions.waiting:
            world.clock.advance(31)
            world.kicks.kick("conv")
        while world.executions.waiting:
            line, generation = world.executions.waiting.pop(0)
            left = iter([900.0, 900.0, 900.0])
            while Worker(world.ports).advance(line, generation, lambda: next(left, 400.0)).next == "again":  # noqa: B023
                left = iter([900.0, 900.0])
        if status(world)["phase"] == "Succeeded":
            break
    world.settle()
    assert status(world)["phase"] == "Succeeded"
    sealed = [[encode_request(request) for request in one.models.requests] for one in (undisturbed, world)]
    assert sealed[0] == sealed[1]


# --- the journal's limit ---


def many(rounds: int, calls: int, store: MemoryStore | None = None, context: Context = CONTEXT) -> World:
    """Rounds of so many tiny commands each, then an answer."""

    def script(request: ModelRequest, number: int) -> Step:
        if number == rounds:
            return says("done")
        made = [("run_command", {"command": f"{number}.{place}"}) for place in range(calls)]
        return says(f"round {number}", *made)

    world = World(script, lambda kind, request: exited("."), store=store)
    world.admit(context=context, cap="1000")
    return world


@pytest.mark.req("NOD-078")
@pytest.mark.parametrize(("most", "calls"), [(60, 7), (61, 7), (62, 7), (63, 7), (64, 30), (100, 1)])
def test_no_message_takes_a_run_beyond_its_journal(
    monkeypatch: pytest.MonkeyPatch, most: int, calls: int
) -> None:
    monkeypatch.setattr(decide, "MOST_STEPS", most)
    world = many(1000, calls)
    world.settle()
    assert (status(world)["phase"], status(world)["reason"]) == ("Failed", "JournalLimitReached")
    run = world.outside.run("conv-1")
    assert run is not None
    assert run.seq == most - RESERVED_STEPS
    assert not any(daemon.alive for daemon in world.sandboxes.daemons.values())


@pytest.mark.req("NOD-078")
def test_an_answer_in_the_last_round_that_the_journal_holds_is_the_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for most in range(40, 46):
        monkeypatch.setattr(decide, "MOST_STEPS", most)
        world = many(5, 5)  # the sandbox, five rounds of six steps, the answer: 32 steps
        world.settle()
        fits = most - RESERVED_STEPS >= 32
        assert status(world)["phase"] == ("Succeeded" if fits else "Failed"), most


@pytest.mark.req("NOD-078")
def test_a_full_journal_is_not_blamed_on_a_call_that_was_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decide, "MOST_STEPS", 60)
    world = many(1000, 7, context=replace(CONTEXT, max_tool_calls=3))
    world.settle()
    assert status(world)["reason"] == "JournalLimitReached"
    assert "as many steps as one run may have" in status(world)["message"]


@pytest.mark.req("NOD-078", "NOD-138")
@pytest.mark.parametrize("most", range(16, 22))
def test_messages_do_not_take_a_run_beyond_its_journal_either(
    monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(decide, "MOST_STEPS", most)
    world = World(lambda request, number: says("done"))
    world.admit(keep_alive=True, cap="1000")
    world.settle()
    for turn in range(2, most):
        if status(world)["phase"] != "Waiting":
            break
        world.say(f"more {turn}", f"key-{turn}")
        world.settle()
    assert (status(world)["phase"], status(world)["reason"]) == ("Failed", "JournalLimitReached")
    head = world.outside.conversation("conv")
    assert head is not None
    assert most - RESERVED_STEPS <= head.steps <= most
    assert not any(daemon.alive for daemon in world.sandboxes.daemons.values())


@pytest.mark.req("NOD-128", "FLD-11", "FLD-07")
def test_what_was_counted_before_results_were_left_out_bounds_no_later_call() -> None:
    """Results of which every byte is a token come in the place of ones that were cheap to count."""
    reserves: list[tuple[Decimal, Decimal]] = []

    def tokens(request: ModelRequest) -> int:
        return sum(
            len(result.text) // (8 if result.text[0] in "0x" else 1)
            for message in request.messages
            if isinstance(message, ToolResults)
            for result in message.results
        )

    def script(request: ModelRequest, number: int) -> Step:
        run = world.outside.run("conv-1")
        assert run is not None
        task = world.outside.tasks("conv-1", [f"r{number + 1}"])[f"r{number + 1}"]
        usage = Usage(tokens(request), 10)
        reserves.append((task.reserved or ZERO, cost(request.target, usage) or ZERO))
        if number == 8:
            return says("done", usage=usage)
        return says(f"round {number}", ("run_command", {"command": str(number)}), usage=usage)

    def behaviour(kind: str, request: dict[str, Any]) -> dict[str, Any]:
        return exited("x" * 16_000 if int(request["command"]) < 4 else "é" * 8_000)

    world = World(script, behaviour)
    world.models.target = lambda choice, family: replace(  # type: ignore[method-assign]
        target("sonnet"), context_window=10_000
    )
    world.admit(context=CONTEXT, cap="1000")
    world.settle()
    assert status(world)["phase"] == "Succeeded", status(world)
    assert all(bound >= real for bound, real in reserves)


class Counted(MemoryStore):
    """Counts what each step costs: requests to the store, rows and bytes of them."""

    def __init__(self) -> None:
        super().__init__()
        self.marks: list[tuple[int, ...]] = []
        self.requests = self.rows_moved = self.moved = 0

    def commit(self, transaction: Transaction, token: str) -> None:
        super().commit(transaction, token)
        written = [self._rows.get(operation.key) for operation in transaction.operations]
        self._count([row for row in written if row])
        steps = sum(operation.key.sk.startswith("obs#") for operation in transaction.operations)
        self.marks += [(self.requests, self.rows_moved, self.moved)] * steps

    def get(self, keys: Sequence[Key]) -> list[Row | None]:
        found = super().get(keys)
        self._count([row for row in found if row])
        return found

    def query(self, pk: str, prefix: str = "", **more: Any) -> Page:
        page = super().query(pk, prefix, **more)
        self._count(list(page.rows))
        return page

    def _count(self, rows: list[Row]) -> None:
        self.requests += 1
        self.rows_moved += len(rows)
        self.moved += sum(len(str(row)) for row in rows)


@pytest.mark.timeout(600)
@pytest.mark.req("FLD-07", "NOD-078", "NOD-593", "NODQ-48")
def test_ten_thousand_steps_cost_the_same_each_are_listed_in_order_and_are_the_last() -> None:
    store = Counted()
    world = many(1000, ROUND - 1, store)
    world.settle()
    assert (status(world)["phase"], status(world)["reason"]) == ("Failed", "JournalLimitReached")
    assert len(store.marks) == MOST_STEPS - RESERVED_STEPS
    assert len(world.sandboxes.effects) == len(set(world.sandboxes.effects))
    for early, late in zip(_of_rounds(store, 2, 10), _of_rounds(store, 72, 80), strict=True):
        assert late <= early * 1.1
    stepping = Stepping(Shelf(world.outside, world.payloads, world.clock))
    place, after, seen = Place(NAMES.org, NAMES.project, "alice"), None, list[int]()
    while True:
        page = stepping.page(place, NAMES.name, 500, after)
        seen += [item["index"] for item in page.items]
        if (after := page.after) is None:
            break
    assert seen == list(range(1, MOST_STEPS - RESERVED_STEPS + 1))


def _of_rounds(store: Counted, start: int, end: int) -> list[int]:
    """Requests, rows and bytes that these rounds took; one step, the sandbox, comes before the first."""
    before, after = store.marks[1 + start * ROUND], store.marks[1 + end * ROUND]
    return [late - early for early, late in zip(before, after, strict=True)]
