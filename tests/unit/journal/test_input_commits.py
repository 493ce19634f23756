"""The conditions of the commits on a conversation's queue."""

from dataclasses import replace

import pytest
from nodus_core.conversations.worker import Worker
from nodus_core.journal.fence import Fence
from nodus_core.journal.keys import conversation_key, input_key
from nodus_core.journal.store import Present, Transaction, Update
from nodus_core.kernel.errors import ConditionFailed, CorruptRow
from nodus_core.kernel.objects import Conversation, Input, Receipt
from nodus_core.kernel.states import InputState
from nodus_core.kernel.text import Inline
from nodus_core.testing.scripted_model import plays
from nodus_core.testing.world import World


@pytest.fixture
def world() -> World:
    made = World(plays([]))
    made.admit()
    return made


def head(world: World) -> Conversation:
    found = world.outside.conversation("conv")
    assert found is not None
    return found


def message(world: World, seq: int, key: str = "k") -> tuple[Input, Receipt]:
    now = world.clock.now()
    entry = Input("conv", seq, Inline("x"), InputState.QUEUED, "person", "alice", now, message_key=key)
    return entry, Receipt(key, "digest", "{}", now)


def after(world: World, **changes: object) -> None:
    change = Update(conversation_key("conv"), Present(), assign=changes)
    world.store.commit(Transaction("set", (change,)), "set")


@pytest.mark.req("FLD-12", "INV-50")
def test_an_input_is_accepted_with_its_receipt_and_makes_the_line_due(world: World) -> None:
    before = head(world)
    world.outside.inputs.accept(*message(world, 2))
    now = head(world)
    assert (now.accepted, now.bell) == (2, before.bell + 1)
    assert world.outside.message("conv", "k") == message(world, 2)[1]
    assert world.outside.input("conv", 2) == message(world, 2)[0]
    row = world.store.rows()[conversation_key("conv")]  # type: ignore[attr-defined] - the in-memory double
    assert (row["outbox"], row["dueAt"] <= "2030-01-01T00:00:01") == ("line", True)


@pytest.mark.req("FLD-12", "NOD-182")
@pytest.mark.parametrize(
    "changes",
    [{"ended": True}, {"stop": {"at": "x", "by": "alice", "reason": "Cancelled"}}, {"accepted": 2}],
    ids=["ended", "stopped", "another came first"],
)
def test_an_input_that_comes_too_late_leaves_nothing(world: World, changes: dict[str, object]) -> None:
    after(world, **changes)
    rows = world.store.rows()  # type: ignore[attr-defined]
    with pytest.raises(ConditionFailed):
        world.outside.inputs.accept(*message(world, 2))
    assert world.store.rows() == rows  # type: ignore[attr-defined]


def test_a_key_is_accepted_once(world: World) -> None:
    world.outside.inputs.accept(*message(world, 2))
    with pytest.raises(ConditionFailed):
        world.outside.inputs.accept(*message(world, 3))


@pytest.mark.req("FLD-12")
def test_only_the_holder_of_an_ended_line_returns_inputs_and_only_queued_ones(world: World) -> None:
    world.outside.inputs.accept(*message(world, 2))
    fence = Fence("conv", 1, "w")
    world.outside.lines.take(head(world), None, fence, world.clock.now())
    entries = world.outside.inputs_of("conv", after=0, limit=10)
    inputs = world.outside.inputs
    with pytest.raises(ConditionFailed):
        inputs.return_unread(fence, head(world), entries)  # it has not ended
    after(world, ended=True)
    with pytest.raises(ConditionFailed):
        inputs.return_unread(replace(fence, claimant="other"), head(world), entries)
    opened = replace(entries[0], state=InputState.OPENED)
    assert inputs.return_unread(fence, head(world), [opened, entries[1]]).returned == 2
    states = [entry.state for entry in world.outside.inputs_of("conv", after=0, limit=10)]
    assert states == [InputState.QUEUED, InputState.CANCELED]


def test_an_input_that_is_not_queued_is_no_turn_and_holds_no_worker_in_a_loop(world: World) -> None:
    settled = Update(input_key("conv", 1), when=Present(), assign={"state": "canceled"})
    world.store.commit(Transaction("set", (settled,)), "set")
    with pytest.raises(CorruptRow, match="input 1 is to be read and is canceled"):
        Worker(world.ports).advance("conv", 1, lambda: 900.0)
    assert head(world).opened == 0
    world.stop()
    world.settle()  # it can still be ended
    assert head(world).closed
