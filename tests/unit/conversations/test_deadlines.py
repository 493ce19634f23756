"""A deadline ends a run wherever it stands: Failed, DeadlineExceeded, its sandbox gone, nothing begun after it."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from nodus_core.conversations.context import Context, ModelChoice
from nodus_core.conversations.deadline import expire
from nodus_core.inference.errors import ModelUnavailable
from nodus_core.journal.ports import TaskRequest
from nodus_core.kernel.errors import ConditionFailed, Refusal
from nodus_core.kernel.states import InputState, TaskState
from nodus_core.kernel.times import moment
from nodus_core.testing.scripted_model import plays, says
from nodus_core.testing.scripted_sandbox import RUNNING, exited
from nodus_core.testing.world import NAMES, World

CONTEXT = Context("agent", 1, "You are careful.", ModelChoice("Nodus"))
LOOK = says("look", ("run_command", {"command": "python3 --version"}))
LIFETIME = 90.0


def status(world: World) -> dict[str, Any]:
    obj = world.outside.object(NAMES)
    assert obj is not None
    return obj.status


def deadline(world: World) -> datetime:
    head = world.outside.conversation("conv")
    assert head is not None
    assert head.deadline is not None
    return head.deadline


class Calls:
    """Notes when each model call was made."""

    def __init__(self, world: World) -> None:
        self.at: list[datetime] = []
        call = world.models.call

        def noted(request: Any, key: str | None = None) -> Any:
            self.at.append(world.clock.now())
            return call(request, key)

        world.models.call = noted  # type: ignore[method-assign]


def expires(world: World, *, most: float = 100.0) -> None:
    """Lets everything happen, and looks at what a deadline must have left (NOD-178)."""
    calls = Calls(world)
    world.settle()
    shown, head = status(world), world.outside.conversation("conv")
    assert (shown["phase"], shown["reason"]) == ("Failed", "DeadlineExceeded")
    assert "deadline" in shown["message"]
    late = moment(shown["finishedAt"]) - deadline(world)
    assert timedelta(0) <= late <= timedelta(seconds=most)
    assert not any(daemon.alive for daemon in world.sandboxes.daemons.values())
    assert shown.get("sandbox", {}).get("phase", "Deleted") == "Deleted"
    assert all(at < deadline(world) for at in calls.at)
    assert head is not None
    assert head.closed
    for number in range(1, head.opened + 1):
        run = world.outside.run(f"conv-{number}")
        assert run is not None
        assert not run.open
    before = world.store.rows()  # type: ignore[attr-defined] - the in-memory double
    world.settle()
    assert world.store.rows() == before  # type: ignore[attr-defined]


@pytest.mark.req("NOD-178", "NOD-033", "NOD-044", "INV-12")
def test_while_it_waits_for_a_message() -> None:
    world = World(plays([says("done")]))
    world.admit(keep_alive=True, lifetime=LIFETIME)
    expires(world)
    (turn,) = status(world)["turns"]
    assert turn["phase"] == "Succeeded"
    assert status(world)["answer"]["preview"] == "done"


@pytest.mark.req("NOD-177", "NOD-045")
def test_while_a_command_runs() -> None:
    world = World(plays([LOOK]), lambda kind, request: RUNNING)
    world.admit(lifetime=LIFETIME)
    expires(world)
    (turn,) = status(world)["turns"]
    assert (turn["phase"], turn["reason"]) == ("Failed", "DeadlineExceeded")
    assert world.outside.tasks("conv-1", ["r1t0"])["r1t0"].state is TaskState.CANCELED


@pytest.mark.req("NOD-177")
def test_while_a_worker_waits_for_a_command_it_does_not_wait_on() -> None:
    world = World(plays([LOOK]), lambda kind, request: RUNNING)
    world.admit(lifetime=4.0)
    expires(world, most=4.0)


@pytest.mark.req("NOD-177", "FLD-04")
@pytest.mark.parametrize("patience", [2.0, 7.0, 40.0, 3000.0])
def test_while_the_provider_asks_for_patience(patience: float) -> None:
    def busy(request: Any, number: int) -> Any:
        return ModelUnavailable("busy", patience)

    world = World(busy)
    world.admit(lifetime=4.0)
    expires(world, most=2.0)
    head = world.outside.conversation("conv")
    assert head is not None
    assert head.spent < head.cap / 1000  # no reserve was booked for a call that was not made


@pytest.mark.req("NOD-177", "NODQ-21")
def test_while_it_is_queued_and_nobody_ever_started_it() -> None:
    world = World(plays([]))
    world.admit(lifetime=20.0)
    world.executions.waiting.clear()
    world.clock.advance(60)
    expires(world)
    assert status(world)["turns"] == []
    entries = world.outside.inputs_of("conv", after=0, limit=9)
    assert [entry.state for entry in entries] == [InputState.CANCELED]


@pytest.mark.req("NOD-177", "NODQ-20")
@pytest.mark.parametrize("held", ["MaxCostReached", "NeedsResolution"])
def test_while_only_a_person_can_move_it_on(held: str) -> None:
    world = World(plays([LOOK]))

    def dies(kind: str, request: dict[str, Any]) -> dict[str, Any]:
        for daemon in world.sandboxes.daemons.values():
            daemon.alive = False
        return exited()

    world.sandboxes._behaviour = dies
    world.admit(lifetime=300.0, cap="0.000001" if held == "MaxCostReached" else "1.00")
    seen: list[str] = []
    sleep = world.clock.sleep

    def look(seconds: float) -> None:
        sleep(seconds)
        seen.append(str(status(world).get("reason")))

    world.clock.sleep = look  # type: ignore[method-assign]
    expires(world)
    assert held in seen


@pytest.mark.req("NOD-177")
def test_while_its_sandbox_does_not_come_up() -> None:
    world = World(plays([]))
    started = world.sandboxes.run

    def run(request: TaskRequest) -> str:
        task = started(request)
        world.sandboxes.daemons[task].alive = False
        return task

    world.sandboxes.run = run  # type: ignore[method-assign]
    world.admit(lifetime=6.0)
    expires(world, most=10.0)


def test_while_its_setup_runs() -> None:
    world = World(plays([]), lambda kind, request: RUNNING)
    world.admit(lifetime=LIFETIME, context=replace(CONTEXT, setup="sleep 1000"))
    expires(world)


@pytest.mark.req("NOD-178", "FLD-12", "NOD-182")
def test_messages_that_it_could_not_read_are_listed_and_later_ones_are_refused() -> None:
    world = World(plays([LOOK]), lambda kind, request: RUNNING)
    world.admit(keep_alive=True, lifetime=LIFETIME)
    world.say("And?", "unread")
    world.clock.advance(LIFETIME)
    with pytest.raises(Refusal, match="DeadlineExceeded") as refused:  # nobody has stopped it yet
        world.say("And?", "late")
    assert refused.value.reason == "AgentRunFinished"
    expires(world)
    assert status(world)["undelivered"] == [{"messageKey": "unread", "reason": "DeadlineExceeded"}]


@pytest.mark.req("NOD-177")
def test_a_reply_that_comes_after_it_begins_nothing_and_is_paid_for() -> None:
    world = World(plays([]))

    def slow(request: Any, number: int) -> Any:
        world.clock.advance(LIFETIME)
        return LOOK

    world.models.script = slow
    world.admit(lifetime=LIFETIME)
    expires(world)
    assert world.sandboxes.effects == []
    head = world.outside.conversation("conv")
    assert head is not None
    assert head.spent > 0


@pytest.mark.req("NOD-177")
def test_a_kick_at_the_deadline_stops_a_run_whose_worker_is_busy() -> None:
    world = World(plays([]))
    shown: list[dict[str, Any]] = []

    def slow(request: Any, number: int) -> Any:
        world.clock.advance(20)
        world.kicks.kick("conv")  # as the schedule does
        shown.append(status(world))
        return says("too late")

    world.models.script = slow
    world.admit(lifetime=15.0)
    world.settle()
    assert (shown[0]["phase"], shown[0]["reason"]) == ("Running", "DeadlineExceeded")
    assert (status(world)["phase"], status(world)["reason"]) == ("Failed", "DeadlineExceeded")
    assert "answer" not in status(world)


def test_a_run_that_is_done_before_it_knows_nothing_of_it() -> None:
    world = World(plays([says("done")]))
    world.admit(lifetime=LIFETIME)
    world.settle()
    world.clock.advance(LIFETIME)
    before = world.store.rows()  # type: ignore[attr-defined]
    assert world.kicks.kick("conv") is False
    assert status(world)["phase"] == "Succeeded"
    assert world.store.rows() == before  # type: ignore[attr-defined]


@pytest.mark.req("NOD-185")
def test_a_cancel_before_it_is_a_cancel() -> None:
    world = World(plays([says("done")]))
    world.admit(keep_alive=True, lifetime=600.0)
    world.executions.waiting.clear()
    world.stop()
    world.clock.advance(1000)
    world.settle()
    assert (status(world)["phase"], status(world)["reason"]) == ("Cancelled", "Cancelled")


def test_of_a_cancel_and_a_deadline_at_once_the_first_stays() -> None:
    world = World(plays([]))
    world.admit(lifetime=1.0)
    head = world.outside.conversation("conv")
    assert head is not None
    world.stop()
    world.clock.advance(2)
    with pytest.raises(ConditionFailed):
        expire(world.outside, head, world.clock)
    world.settle()
    assert status(world)["phase"] == "Cancelled"
