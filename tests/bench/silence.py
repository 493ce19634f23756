"""A command that says nothing for longer than a Lambda invocation may live, for real: of a run, and of a person."""

from __future__ import annotations

import time
import uuid
from concurrent.futures import ThreadPoolExecutor

from tests.bench.cloud import BenchError
from tests.bench.figures import Table
from tests.bench.person import AGENT, FINAL, Person, instant

SILENT_S = 16 * 60
"""`scripts/rounds.yaml` has the same; a Lambda invocation lives for 15 minutes at most."""

PATIENCE_S = SILENT_S + 300.0
LOOK_S = 5.0
NOTE = (
    f"`sleep {SILENT_S}`, at the same time as the command of a model and as that of a person in a sandbox of his own."
    " Attempt: how often the step was begun (a person's command is begun once, or never). Each is looked at every five seconds from outside."
)


def measure(person: Person) -> Table:
    """The table, after a good quarter of an hour. Raises BenchError when a command does not end by itself."""
    with ThreadPoolExecutor(2) as pool:
        found = [pool.submit(_of_a_run, person), pool.submit(_of_a_person, person)]
        rows = [each.result() for each in found]
    return Table(
        "A silent command of 16 minutes", ("whose", "state", "attempt", "s beyond its sleep"), rows, NOTE
    )


def _of_a_run(person: Person) -> tuple[str, str, int, float]:
    name = person.start(AGENT, "Bench: a silent command")
    deadline = time.monotonic() + PATIENCE_S
    while (run := person.client.agentruns.get(name)).status.phase not in FINAL:
        if time.monotonic() > deadline:
            raise BenchError(f"run {name} has not ended: {run.status.to_dict()}")
        time.sleep(LOOK_S)
    step = next(each for each in person.steps(name) if each["name"].startswith("turn-1.tool."))
    if run.status.phase != "Succeeded":
        raise BenchError(f"run {name} did not succeed: {run.status.to_dict()}; {dict(step)}")
    spent = instant(step["finishedAt"]) - instant(step["startedAt"])
    return "a run's", step["state"], step["attempt"], spent - SILENT_S


def _of_a_person(person: Person) -> tuple[str, str, None, float]:
    sandboxes, name = person.client.sandboxes, f"bench-{uuid.uuid4().hex[:10]}"
    sandboxes.create(name, {"ttl": "1h"})
    try:
        deadline = time.monotonic() + PATIENCE_S
        while sandboxes.get(name).status.phase != "Running":
            time.sleep(1)
        command = sandboxes.run(name, f"sleep {SILENT_S}", timeout="20m").metadata.name
        while (seen := sandboxes.command(name, command).status).state in ("Pending", "Running"):
            if time.monotonic() > deadline:
                raise BenchError(f"command {command} of sandbox {name} has not ended: {seen.to_dict()}")
            time.sleep(LOOK_S)
    finally:
        sandboxes.delete(name)
    spent = instant(seen.finishedAt) - instant(seen.startedAt)
    return "a person's", seen.state, None, spent - SILENT_S
