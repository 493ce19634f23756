"""A cloud that keeps two sandboxes warm: they become somebody's, are made up for, and go when none are wanted."""

from collections.abc import Iterator
from datetime import datetime

import pytest

from localstack.deploy import sweep
from localstack.testing import SETTINGS, TestCloud, discard, new_cloud
from tests.integration.runs.machine import room
from tests.integration.runs.orphans import Rows, orphans, rows_of, running_tasks
from tests.integration.runs.person import Person, Run, in_turn
from tests.integration.waiting import until

pytestmark = pytest.mark.timeout(400, func_only=True)

SIZE = 2


@pytest.fixture(scope="module")
def warm_cloud() -> Iterator[TestCloud]:
    cloud = new_cloud({**SETTINGS, "NODUS_WARM_SANDBOXES": str(SIZE)})
    try:
        cloud.run("up")
        yield cloud
    finally:
        discard(cloud)


@pytest.fixture
def person(warm_cloud: TestCloud) -> Iterator[Person]:
    made = Person(warm_cloud)
    yield made
    made.leave()


def full(cloud: TestCloud, besides: frozenset[str] = frozenset()) -> Rows:
    """What the journal knows once so many machines wait as are wanted, none of them `besides`."""
    sweep(cloud.cloud)
    return until(
        lambda: rows_of(cloud),
        lambda rows: (
            len([each for each in rows.waiting.values() if "token_hash" in each]) == SIZE
            and not besides & rows.waiting.keys()
        ),
    )


def start_s(run: Run) -> float:
    """Seconds from when a run's sandbox was asked for until its daemon had come up, by the journal's own times."""
    step = run.step("sandbox")
    began, ended = (datetime.fromisoformat(step[name]) for name in ("startedAt", "finishedAt"))
    return (ended - began).total_seconds()


@pytest.mark.req("FLD-10")
def test_a_warm_machine_becomes_a_runs_sandbox_and_is_made_up_for(person: Person) -> None:
    cloud = person.cloud
    waiting = full(cloud).waiting.keys()
    person.agent("quick")
    run = person.start(
        "quick",
        in_turn("echo it works > file", "cat file; pwd; id -un; env | grep -c ^NODUS_"),
        keepAlive=True,
    )
    name = run.waits("MessageWait")["sandbox"]["name"]
    assert run.answer().splitlines()[:3] == ["it works", "/workspace", "agent"]
    rows = rows_of(cloud)
    (machine,) = (each for each, sandbox in rows.became.items() if sandbox == name)
    assert machine in waiting
    task = running_tasks(cloud)[rows.sandboxes[name]["task"]]
    assert task["startedBy"] == machine
    tags = {each["key"]: each["value"] for each in task.get("tags", [])}
    assert (tags["nodus:run"], tags["nodus:egress"]) == (run.uid, "Deny")
    assert rows.sandboxes[name]["started_at"] > rows.sandboxes[name]["created_at"]
    print(f"from a warm machine a sandbox was ready after {start_s(run):.2f} s")
    again = full(cloud, frozenset({machine}))
    assert len(again.waiting.keys() - waiting) == 1
    until(lambda: orphans(cloud), lambda seen: not any(seen.values()))
    room(cloud, machine).kill()
    until(lambda: rows_of(cloud).sandboxes[name]["state"], lambda state: state == "gone")
    run.cancel()
    assert run.cleared()["phase"] == "Cancelled"


@pytest.mark.req("FLD-10")
def test_a_sandbox_that_asks_for_something_else_is_started_as_ever(person: Person) -> None:
    cloud = person.cloud
    waiting = full(cloud).waiting.keys()
    person.agent("open", network={"egress": {"policy": "Open"}})
    run = person.start("open", in_turn("echo it works"))
    run.succeeded()
    print(f"from a fresh task a sandbox was ready after {start_s(run):.2f} s")
    assert run.uid not in "".join(rows_of(cloud).became.values())
    assert rows_of(cloud).waiting.keys() == waiting


@pytest.mark.req("FLD-10")
def test_none_is_left_when_none_are_wanted_any_more(warm_cloud: TestCloud) -> None:
    full(warm_cloud)
    cold = TestCloud(warm_cloud.state, warm_cloud.configuration, {**SETTINGS, "NODUS_WARM_SANDBOXES": "0"})
    try:
        cold.run("up")
        sweep(cold.cloud)
        until(lambda: (rows_of(cold).waiting, running_tasks(cold)), lambda seen: seen == ({}, {}))
        until(lambda: orphans(cold), lambda seen: not any(seen.values()))
    finally:
        warm_cloud.run("up")
