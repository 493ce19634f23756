"""How long a sandbox of one's own takes from being asked for to being ready, through the deployed cloud, one at a time."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
import uuid

from nodus.errors import NodusError, NotFoundError
from nodus_core.aws.dynamodb_store import DynamoDbStore
from nodus_core.aws.system import FreshIds
from nodus_core.journal.journal import Journal

from localstack.deploy import choice, sweep
from localstack.paths import CLOUD_PYTHON, ROOT
from localstack.testing import TestCloud
from tests.bench.cloud import BenchError, wire
from tests.bench.figures import Spread, Table
from tests.bench.person import PATIENCE_S, Person

NOTE = (
    "Seconds, one sandbox at a time; p95 by nearest rank. Ready: `status.phase` is `Running`, as a client sees it that "
    "asks again and again; the first command's end is behind that. The floors are measured in turn with the sandboxes: "
    "a POST and a GET of an object that starts nothing, and the launcher's own command line (namespaces, file system, "
    "filter) with `true` in the daemon's place, which no cold sandbox here can start faster than. {warm}"
)
LOOK_S = 0.02
COLD = "No sandbox is kept warm."
WARM = "{size} sandboxes are kept warm, and each of these began when all of them waited."


def measure(cloud: TestCloud, person: Person, repeat: int) -> Table:
    """The table; `repeat` sandboxes. Each begins when so many wait as are kept warm (`NODUS_WARM_SANDBOXES`)."""
    size = int(choice("NODUS_WARM_SANDBOXES"))
    asked: list[float] = []
    ready: list[float] = []
    worked: list[float] = []
    calls: list[float] = []
    launches: list[float] = []
    for _ in range(repeat):
        _fill(cloud, size)
        _one(person, asked, ready, worked)
        calls.append(_calls(person))
        launches += _launches(1)
    rows = [
        ("create: the POST is answered", asked),
        ("create → ready", ready),
        ("create → a first command has ended", worked),
        ("floor: a POST and a GET", calls),
        ("floor: the launcher with `true`", launches),
    ]
    shown = [(name, Spread.of(found), _p95(found), len(found)) for name, found in rows]
    note = NOTE.format(warm=WARM.format(size=size) if size else COLD)
    return Table("A sandbox, from asking to ready", ("seconds", "median", "p95", "count"), shown, note)


def _fill(cloud: TestCloud, size: int) -> None:
    """Has the sweeper fill the pool, and waits for its daemons. Raises BenchError."""
    table, began = cloud.cloud.output("TableName"), time.monotonic()
    journal = Journal(DynamoDbStore(wire(cloud.cloud), table), FreshIds()) if size else None
    while journal is not None and sum(each.is_up for each in journal.warm_machines()) < size:
        if time.monotonic() - began > PATIENCE_S:
            raise BenchError("the pool of warm sandboxes is not filled: look at the log of the sweeper")
        sweep(cloud.cloud)
        time.sleep(1)


def _one(person: Person, asked: list[float], ready: list[float], worked: list[float]) -> None:
    sandboxes, name = person.client.sandboxes, f"bench-{uuid.uuid4().hex[:10]}"
    began = time.monotonic()
    sandboxes.create(name, {"ttl": "30m"})
    asked.append(time.monotonic() - began)
    try:
        while (phase := sandboxes.get(name).status.phase) != "Running":
            if phase == "Paused" or time.monotonic() - began > PATIENCE_S:
                raise BenchError(f"sandbox {name} does not come up: {sandboxes.get(name).status.to_dict()}")
            time.sleep(LOOK_S)
        ready.append(time.monotonic() - began)
        command = sandboxes.run(name, "true").metadata.name
        while sandboxes.command(name, command).status.state in ("Pending", "Running"):
            time.sleep(LOOK_S)
        worked.append(time.monotonic() - began)
    finally:
        _delete(person, name)


def _delete(person: Person, name: str) -> None:
    """Returns when its machine is gone: the next one is alone."""
    deadline = time.monotonic() + PATIENCE_S
    try:
        person.client.sandboxes.delete(name)
        while time.monotonic() < deadline:
            person.client.sandboxes.get(name)
            time.sleep(0.1)
    except NotFoundError:
        return
    except NodusError as error:
        raise BenchError(f"sandbox {name} is not deleted: {error}") from error
    raise BenchError(f"sandbox {name} was deleted and is still there")


def _calls(person: Person) -> float:
    agents, name = person.client.agents, f"bench-{uuid.uuid4().hex[:10]}"
    began = time.monotonic()
    agents.create(name, {})
    agents.get(name)
    spent = time.monotonic() - began
    agents.delete(name)
    return spent


def _launches(times: int) -> list[float]:
    """Raises BenchError."""
    with tempfile.TemporaryDirectory(prefix="nodus-floor-") as folder:
        done = subprocess.run(
            [str(CLOUD_PYTHON), "-m", "tests.bench.sandbox_floor", str(times)],
            cwd=ROOT,
            env={**os.environ, "NODUS_STATE": folder},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode != 0:
        raise BenchError(f"the launcher cannot be measured: {done.stderr[-500:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def _p95(found: list[float]) -> float:
    ordered = sorted(found)
    return ordered[-(-len(ordered) * 95 // 100) - 1]
