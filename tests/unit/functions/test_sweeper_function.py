"""The sweeper as its schedule calls it: what is due is kicked, whatever else is wrong."""

import pytest
from nodus_core.journal.image_builds import wanted
from nodus_core.journal.keys import conversation_key, due_shard, image_build_key
from nodus_core.journal.store import Put, Transaction
from nodus_core.kernel.image_builds import ImageBuild
from nodus_core.kernel.objects import Object, ObjectKey
from nodus_core.kernel.text import Inline
from nodus_core.kernel.times import stamp
from nodus_core.testing.scripted_sandbox import Daemon

from functions.sweeper import handler as sweeper
from tests.unit.functions.deployed import Deployed, build_ended

IMAGE = ObjectKey("acme", "web", "EnvironmentImage", "tools")
SCHEDULED = {"version": "0", "source": "aws.scheduler", "detail-type": "Scheduled Event", "detail": {}}


@pytest.mark.req("NOD-074", "INV-12")
def test_a_line_whose_lease_has_ended_is_kicked_once(deployed: Deployed) -> None:
    deployed.world.executions.waiting.clear()
    deployed.world.clock.advance(31)
    swept = deployed.call(sweeper, SCHEDULED, seconds=20)
    assert (swept["passes"], swept["kicked"], swept["failed"]) == (1, 1, 0)
    assert deployed.world.executions.waiting == [("conv", 2)]
    assert deployed.call(sweeper, SCHEDULED, seconds=20)["kicked"] == 0


def test_one_that_will_be_due_soon_is_waited_for(deployed: Deployed) -> None:
    deployed.world.executions.waiting.clear()
    deployed.world.clock.advance(5)
    swept = deployed.call(sweeper, SCHEDULED, seconds=60)
    assert (swept["passes"], swept["kicked"]) == (2, 1)


def test_a_row_that_nobody_can_read_keeps_no_other_from_being_kicked(deployed: Deployed) -> None:
    world = deployed.world
    rows = []
    for number in range(5):
        key = conversation_key(f"broken-{number}")
        due = {"dueShard": due_shard(key.pk), "dueAt": stamp(world.clock.now())}
        rows.append(Put({"pk": key.pk, "sk": key.sk, "v": 1, **due}))
    world.store.commit(Transaction("prepare", tuple(rows)), "prepare")
    world.executions.waiting.clear()
    world.clock.advance(31)
    swept = deployed.call(sweeper, SCHEDULED, seconds=20)
    assert (swept["kicked"], swept["failed"]) == (1, 5)


def test_a_run_that_is_over_is_never_due_again(deployed: Deployed) -> None:
    deployed.world.settle()
    deployed.world.clock.advance(10_000)
    assert deployed.call(sweeper, SCHEDULED, seconds=20)["kicked"] == 0


@pytest.mark.req("FLD-10")
def test_a_task_that_nobody_wants_is_stopped_and_counted(
    deployed: Deployed, capsys: pytest.CaptureFixture[str]
) -> None:
    tasks = deployed.world.sandboxes.daemons
    tasks["task/stray"] = Daemon("made-up-s1", "no code", "token", "boot")
    swept = deployed.call(sweeper, SCHEDULED, seconds=20)
    assert (swept["tasks"]["stopped"], tasks["task/stray"].alive) == (1, False)
    assert '"OrphansStopped":[1.0]' in capsys.readouterr().out


@pytest.mark.req("NODQ-104")
def test_the_end_of_a_build_is_looked_at_at_once_and_others_builds_are_not(deployed: Deployed) -> None:
    world = deployed.world
    obj = Object(IMAGE, "uid", 1, 1, Inline("{}"), world.clock.now(), {"build": "uid-1", "builds": 1})
    build = ImageBuild("uid-1", IMAGE, "uid", "base@sha256:0", Inline("true"), world.clock.now())
    world.outside.objects.create(obj, world.clock.now(), wanted(build, world.clock.now()))
    assert deployed.call(sweeper, build_ended(None)) == {"build": None}
    assert deployed.call(sweeper, build_ended("another-1")) == {"build": "another-1"}
    assert deployed.call(sweeper, build_ended("uid-1", "FAILED")) == {"build": "uid-1"}
    started = world.outside.image_build("uid-1")
    assert started is not None
    assert started.build is not None


def test_a_look_at_a_build_that_fails_is_the_next_sweeps_and_no_error(deployed: Deployed) -> None:
    key = image_build_key("uid-1")
    broken = Put({"pk": key.pk, "sk": key.sk, "v": 1})
    deployed.world.store.commit(Transaction("prepare", (broken,)), "prepare")
    assert deployed.call(sweeper, build_ended("uid-1")) == {"build": "uid-1"}
