"""Nodus's own figures for the comparison: the hot loop, and runs through the deployed cloud."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

from nodus_core.aws.dynamodb_store import DynamoDbStore
from nodus_core.aws.s3_payloads import S3Payloads

from localstack.testing import TestCloud
from tests.bench import cloud as clouds
from tests.bench.cloud import BenchError
from tests.bench.figures import Spread
from tests.bench.loop import STEPS_A_ROUND, Loop
from tests.bench.peers.figures import WIDE, Compared, Kill
from tests.bench.person import AGENT, PATIENCE_S, Person
from tests.bench.throughput import burst
from tests.integration.runs.machine import send, workers

KILLED_PROMPT = "Bench: count 20 commands"
KILLED_COMMANDS = 20
LOOK_S = 0.02


def compared(cloud: TestCloud, person: Person, rounds: int, repeat: int, kills: int) -> Compared:
    """All figures of Nodus. Raises BenchError when a run does not end well."""
    alone = [_alone(cloud, rounds) for _ in range(repeat + 1)][1:]  # the first one imports and compiles
    burst(cloud, person, 2)
    wide = [burst(cloud, person, WIDE.runs).rate for _ in range(repeat)]
    chance = random.Random(kills)
    return Compared(
        name="Nodus, the whole local cloud",
        step_ms=Spread.of([seconds * 1000 for seconds, _ in alone]),
        step_kib=Spread.of([written / 1024 for _, written in alone]),
        wide_rate=Spread.of(wide),
        kills=[_kill(cloud, person, chance) for _ in range(kills)],
    )


def _alone(cloud: TestCloud, rounds: int) -> tuple[float, float]:
    """Seconds and written bytes of a step in the hot loop, the sandbox link's half included in the bytes alone."""
    emulator, wire = cloud.cloud.pids["cloud"], clouds.wire(cloud.cloud)
    with clouds.own_table(cloud.cloud) as table, clouds.own_bucket(cloud.cloud) as bucket:
        payloads = S3Payloads(clouds.client(cloud.cloud, "s3"), bucket)
        loop = Loop(DynamoDbStore(wire, table), payloads, rounds)
        before = _written(emulator)
        loop.run()
        written = _written(emulator) - before
    spent = sum(whole - link for whole, link in loop.watch.rounds())
    steps = rounds * STEPS_A_ROUND
    return spent / steps, written / steps


def _kill(cloud: TestCloud, person: Person, chance: random.Random) -> Kill:
    """Kills the worker of a run of commands, and counts the commands' effects when the run has ended."""
    name = person.start(AGENT, KILLED_PROMPT)
    _wait_for_steps(person, name, chance.randint(6, 2 * KILLED_COMMANDS))
    send(workers(cloud, "line"), signal.SIGKILL)
    killed = time.monotonic()
    _wait_for_steps(person, name, len(person.steps(name)) + 1)
    resumed = time.monotonic() - killed
    person.ended([name])
    effects = int(person.client.agentruns.answer(name).split()[0])
    if effects < KILLED_COMMANDS:
        raise BenchError(f"run {name}: only {effects} of {KILLED_COMMANDS} commands had their effect")
    person.gone(name)
    return Kill(repeated=effects - KILLED_COMMANDS, resumed_s=resumed)


def _wait_for_steps(person: Person, name: str, number: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while len(person.steps(name)) < number:
        if time.monotonic() > deadline:
            raise BenchError(f"run {name} has not begun {number} steps after {PATIENCE_S:.0f} s")
        time.sleep(LOOK_S)


def _written(pid: int) -> int:
    """Bytes that a process has had written to disk."""
    lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("write_bytes:"))
