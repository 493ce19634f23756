"""How long one run takes through the deployed cloud, alone: to its first step, and to its answer."""

from __future__ import annotations

import time
from collections import defaultdict

import nodus

from localstack.testing import TestCloud
from tests.bench.figures import Spread, Table
from tests.bench.person import AGENT, HELLO_AGENT, HELLO_PROMPT, Person, instant
from tests.bench.processes import cool

NOTE = (
    "Seconds, median [min-max]. Cold: every process of every function was ended before; warm: a run came just before."
    " The hello run has a sandbox, a setup, a routing call, two model calls and a command. By the CLI: three commands"
    " in a row (create, wait, answer), each a process of its own; by the SDK: one `agent.remote(…)`."
)

Times = dict[str, list[float]]


def measure(cloud: TestCloud, person: Person, repeat: int) -> Table:
    """The table of single runs; `repeat` of each kind."""
    cold, warm = _times(cloud, person, repeat, warm=False), _times(cloud, person, repeat, warm=True)
    rows = [(name, Spread.of(cold[name]), Spread.of(warm[name])) for name in warm]
    return Table("One run, deployed", ("seconds", "cold", "warm"), rows, NOTE)


def _times(cloud: TestCloud, person: Person, repeat: int, *, warm: bool) -> Times:
    found: Times = defaultdict(list)
    if warm:
        _hello_by_sdk(person, defaultdict(list))
    for _ in range(repeat):
        for measured in (_first_step, _hello_by_cli, _hello_by_sdk):
            if not warm:
                cool(cloud)
            measured(person, found)
    return found


def _first_step(person: Person, found: Times) -> None:
    name = person.new_run()
    posted, wall = time.monotonic(), time.time()
    person.start(AGENT, "Bench: 1 round", name)
    answered, answered_wall = time.monotonic(), time.time()
    found["create: the POST is answered"].append(answered - posted)
    found["answered → first step visible"].append(person.first_step(name) - answered)
    run = person.ended([name])[name]
    steps = {step["name"]: step for step in person.steps(name)}
    for label, step in (("sandbox is asked for", "sandbox"), ("model is asked", "turn-1.model.1")):
        found[f"answered → the {label}"].append(instant(steps[step]["startedAt"]) - answered_wall)
    found["created → finished (1 round, no setup)"].append(instant(run["status"]["finishedAt"]) - wall)
    person.gone(name)


def _hello_by_cli(person: Person, found: Times) -> None:
    name = person.new_run()
    started = time.monotonic()
    person.cli("create", "agentrun", name, "--agent", HELLO_AGENT, "--prompt", HELLO_PROMPT)
    person.cli("wait", f"agentrun/{name}", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=5m")
    person.cli("agentrun", "answer", name)
    found["hello by the CLI: create → answer"].append(time.monotonic() - started)
    started = time.monotonic()
    for _ in range(3):
        person.cli("get", f"agentrun/{name}", "-o", "name")
    found["floor of it: three commands that only read"].append(time.monotonic() - started)
    _add_phases(person, name, found)
    person.gone(name)


def _hello_by_sdk(person: Person, found: Times) -> None:
    agent = nodus.ClaudeAgent.from_name(HELLO_AGENT, client=person.client)
    started = time.monotonic()
    run = agent.submit(HELLO_PROMPT)
    run.wait()
    run.answer()
    found["hello by the SDK: create → answer"].append(time.monotonic() - started)
    person.adopt(run.name)
    person.gone(run.name)


def _add_phases(person: Person, name: str, found: Times) -> None:
    """Where the time of a hello run went, by the moments that its steps show."""
    steps = {step["name"]: step for step in person.steps(name)}
    for label, step in (("sandbox", "sandbox"), ("setup", "setup"), ("command", "turn-1.tool.run_command.1")):
        seconds = instant(steps[step]["finishedAt"]) - instant(steps[step]["startedAt"])
        found[f"- its step `{label}`"].append(seconds)
    status = person.client.agentruns.get(name)["status"]
    found["- the run, started → finished"].append(
        instant(status["finishedAt"]) - instant(status["startedAt"])
    )
