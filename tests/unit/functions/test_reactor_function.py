"""The reactor as the table's stream and EventBridge call it: each event may be doubled, late, or nobody's."""

import pytest
from nodus_core.conversations.worker import Worker
from nodus_core.journal.keys import command_key, conversation_key, object_key, sandbox_key
from nodus_core.journal.store import Key, Present, Transaction, Update
from nodus_core.kernel.errors import StoreUnavailable
from nodus_core.kernel.objects import Line
from nodus_core.kernel.states import SandboxState
from nodus_core.testing.world import NAMES

from functions.reactor import handler as reactor
from tests.unit.functions.deployed import Deployed, execution_ended, task_ended

CONVERSATION = conversation_key("conv")


def line_of(deployed: Deployed) -> Line:
    head = deployed.world.journal.conversation("conv")
    assert head is not None
    return head.line


def started(deployed: Deployed) -> list[tuple[str, int]]:
    return deployed.world.executions.waiting


def begun(deployed: Deployed) -> None:
    """A worker has asked for the run's sandbox and died; nobody holds the line any more."""
    world = deployed.world
    world.settle()
    started(deployed).clear()


def test_a_changed_line_that_nobody_holds_gets_an_execution(deployed: Deployed) -> None:
    started(deployed).clear()
    record = deployed.record(CONVERSATION, name="INSERT")
    assert deployed.call(reactor, {"Records": [record]}) == {"batchItemFailures": []}
    assert started(deployed) == []  # the execution that its admission started has the lease
    deployed.world.clock.advance(31)
    deployed.call(reactor, {"Records": [record, record]})
    assert started(deployed) == [("conv", 2)]


def test_a_changed_object_is_told_on_the_bus_by_its_ids(deployed: Deployed) -> None:
    deployed.call(reactor, {"Records": [deployed.record(object_key(NAMES), 7)]})
    (event,) = deployed.bus.events
    assert event.type == "AgentRunChanged"
    assert event.detail == {
        "organization": "acme",
        "project": "web",
        "kind": "AgentRun",
        "name": "run",
        "uid": "conv",
        "resourceVersion": "1",
        "phase": "Queued",
    }


def test_a_record_that_can_be_tried_again_is_named_and_the_others_are_done(deployed: Deployed) -> None:
    deployed.bus.sick = StoreUnavailable("busy")
    deployed.world.clock.advance(31)
    started(deployed).clear()
    records = [deployed.record(object_key(NAMES), 1), deployed.record(CONVERSATION, 2)]
    answer = deployed.call(reactor, {"Records": records})
    assert answer == {"batchItemFailures": [{"itemIdentifier": f"{1:021d}"}]}
    assert started(deployed) == [("conv", 2)]


@pytest.mark.parametrize("state", ["pending", "claimed", "withdrawn"])
def test_a_command_that_has_not_ended_wakes_nobody(deployed: Deployed, state: str) -> None:
    """Its line marked it as waited for, and that very write is a record."""
    record = _with_state(deployed, command_key("conv-s1", "conv-1.r1t0"), state)
    deployed.call(reactor, {"Records": [record]})
    assert started(deployed) == []


@pytest.mark.parametrize("state", ["requested", "releasing"])
def test_a_sandbox_that_is_not_up_yet_wakes_nobody(deployed: Deployed, state: str) -> None:
    record = _with_state(deployed, sandbox_key("conv-s1"), state)
    deployed.call(reactor, {"Records": [record]})
    assert started(deployed) == []


@pytest.mark.parametrize(
    ("key", "state"),
    [
        (command_key("conv-s1", "conv-1.r1t0"), "done"),
        (command_key("conv-s1", "conv-1.r1t0"), "lost"),
        (sandbox_key("conv-s1"), "running"),
        (sandbox_key("conv-s1"), "gone"),
    ],
)
def test_news_from_a_sandbox_wakes_its_line(deployed: Deployed, key: Key, state: str) -> None:
    record = _with_state(deployed, key, state)
    deployed.call(reactor, {"Records": [record]})
    assert [line for line, _ in started(deployed)] == ["conv"]


def _with_state(deployed: Deployed, key: Key, state: str) -> dict[str, object]:
    """The record of a row with a state, while the line rests over it."""
    begun(deployed)
    release = ("line.claimant", "line.lease_until")
    waiting = Update(CONVERSATION, Present(), assign={"ended": False, "closed": False}, remove=release)
    change = Update(key, Present(), assign={"state": state, "outbox": "x"})
    deployed.world.store.commit(Transaction("prepare", (waiting, change)), "prepare")
    return deployed.record(key)


@pytest.mark.parametrize("pk", ["grp#1", "rcpt#x", ""])
def test_a_marked_row_of_a_foreign_partition_is_no_failure(deployed: Deployed, pk: str) -> None:
    record = {"dynamodb": {"SequenceNumber": "1", "NewImage": {"pk": {"S": pk}, "outbox": {"S": "x"}}}}
    assert deployed.call(reactor, {"Records": [record]}) == {"batchItemFailures": []}


@pytest.mark.req("NOD-074")
@pytest.mark.parametrize("status", ["FAILED", "TIMED_OUT", "ABORTED"])
def test_a_dead_execution_is_taken_up_at_once_though_its_lease_holds(deployed: Deployed, status: str) -> None:
    started(deployed).clear()
    event = execution_ended("conv-1", status)
    deployed.call(reactor, event)
    deployed.call(reactor, event)  # doubled: generation 1 is over, whoever died
    assert started(deployed) == [("conv", 2)]


def test_an_execution_that_keeps_dying_is_left_to_the_sweeper(deployed: Deployed) -> None:
    for generation in range(1, 6):
        deployed.call(reactor, execution_ended(f"conv-{generation}"))
    assert line_of(deployed).generation == 3


@pytest.mark.parametrize("name", ["conv-9", "nobody-1", "conv", "-1", "conv-x", ""])
def test_an_execution_of_no_present_line_is_nothing(deployed: Deployed, name: str) -> None:
    started(deployed).clear()
    deployed.call(reactor, execution_ended(name))
    assert started(deployed) == []


def test_a_tasks_end_ends_its_sandbox_and_wakes_its_line(deployed: Deployed) -> None:
    world = deployed.world
    world.sandboxes._turn = lambda daemon: None  # type: ignore[method-assign] - its daemon never comes up
    Worker(world.ports).advance("conv", 1, lambda: 900.0)
    started(deployed).clear()
    deployed.call(
        reactor,
        task_ended("conv-s1", stoppedReason="OutOfMemoryError: killed", stopCode="EssentialContainerExited"),
    )
    sandbox = world.journal.sandbox("conv-s1")
    assert sandbox is not None
    assert (sandbox.state, sandbox.reason) == (SandboxState.GONE, "OutOfMemoryError: killed")
    assert [line for line, _ in started(deployed)] == ["conv"]
    deployed.call(reactor, task_ended("conv-s1", stopCode="UserInitiated"))
    again = world.journal.sandbox("conv-s1")
    assert again is not None
    assert again.reason == "OutOfMemoryError: killed"  # the first reason stays


@pytest.mark.req("NOD-414")
@pytest.mark.parametrize("said", ["2030-01-01T00:00:00Z", "2026-01-01T00:00:00", "yesterday", None])
def test_a_tasks_times_are_no_failure_whatever_they_are(deployed: Deployed, said: str | None) -> None:
    world = deployed.world
    world.sandboxes._turn = lambda daemon: None  # type: ignore[method-assign] - its daemon never comes up
    Worker(world.ports).advance("conv", 1, lambda: 900.0)
    deployed.call(reactor, task_ended("conv-s1", pullStartedAt=said, stoppedAt=said))
    sandbox = world.journal.sandbox("conv-s1")
    assert sandbox is not None
    assert sandbox.started_at is not None
    assert sandbox.gone_at is not None
    assert sandbox.started_at <= sandbox.gone_at <= world.clock.now()


@pytest.mark.parametrize("started_by", [None, "", "conv-s9", "ecs-svc/123"])
def test_the_end_of_a_foreign_task_is_nothing(deployed: Deployed, started_by: str | None) -> None:
    started(deployed).clear()
    deployed.call(reactor, task_ended(started_by))
    assert started(deployed) == []


@pytest.mark.req("FLD-10")
def test_the_end_of_another_task_than_the_one_on_record_ends_no_sandbox(deployed: Deployed) -> None:
    """It was never the sandbox's: the sweeper has stopped it, while the sandbox goes on in its own task."""
    world = deployed.world
    world.sandboxes._turn = lambda daemon: None  # type: ignore[method-assign] - its daemon never comes up
    Worker(world.ports).advance("conv", 1, lambda: 900.0)
    started(deployed).clear()
    deployed.call(reactor, task_ended("conv-s1", taskArn="task/another"))
    sandbox = world.journal.sandbox("conv-s1")
    assert sandbox is not None
    assert (sandbox.state, sandbox.task) == (SandboxState.REQUESTED, "task/conv-s1")
    assert started(deployed) == []


@pytest.mark.req("NOD-178")
def test_a_schedule_at_a_deadline_kicks_its_line(deployed: Deployed) -> None:
    deployed.world.clock.advance(31)
    started(deployed).clear()
    assert deployed.call(reactor, {"source": "nodus.schedules", "detail": {"line": "conv"}}) == {}
    assert started(deployed) == [("conv", 2)]
    assert deployed.call(reactor, {"source": "nodus.schedules", "detail": {"line": "gone"}}) == {}


def test_an_event_of_a_foreign_source_is_no_failure(deployed: Deployed) -> None:
    assert deployed.call(reactor, {"source": "aws.ec2", "detail": {}}) == {}
