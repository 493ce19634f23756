"""Steps a second with several runs at once, and the memory that the local cloud takes meanwhile."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from localstack.testing import TestCloud
from tests.bench.figures import Cell, Table
from tests.bench.person import AGENT, Person, instant
from tests.bench.processes import cool, memory, processor_seconds

PROMPT = "Bench: 10 rounds"
NOTE = (
    "Each run: sandbox, route, ten rounds of a model call and a command, an answer (23 steps). From the first run's"
    " creation to the last one's end; clients, functions, emulated AWS and sandboxes share the processors."
)

Memory = dict[str, tuple[int, float]]
Seconds = dict[str, float]

BETWEEN_LOOKS_S = 3.0
"""Between two looks at the memory: reading /proc takes processor time from what is measured."""


@dataclass(frozen=True)
class Burst:
    """Runs that were made at once: how many, their steps, the seconds from the first to the last, the mean of a
    run's own, the most memory seen, and processor seconds by purpose."""

    runs: int
    steps: int
    seconds: float
    each_s: float
    memory: Memory
    processor: Seconds

    @property
    def rate(self) -> float:
        return self.steps / self.seconds


def measure(cloud: TestCloud, person: Person, levels: list[int]) -> tuple[Table, Table, Table]:
    """The tables of rates, of processor time and of memory."""
    rows: list[tuple[Cell, ...]] = []
    idle, warms, most = memory(cloud), list[Burst](), Memory()
    for runs in levels:
        cool(cloud)
        cold = burst(cloud, person, runs)
        warm = burst(cloud, person, runs)
        rows.append((runs, cold.rate, warm.rate, cold.seconds, warm.seconds, cold.each_s, warm.each_s))
        warms.append(warm)
        most = max((most, cold.memory, warm.memory), key=_total)
    columns = (
        *("runs at once", "steps/s, cold", "warm", "s for all, cold", "warm"),
        *("mean s a run, cold", "warm"),
    )
    rates = Table("Runs at once", columns, rows, NOTE)
    return rates, _processor_table(warms), _memory_table(idle, most, max(levels))


def burst(cloud: TestCloud, person: Person, runs: int) -> Burst:
    """Makes the runs at once and waits until all have ended and are deleted. Raises BenchError."""
    names = [person.new_run() for _ in range(runs)]
    looks = Looks(cloud)
    before = processor_seconds(cloud)
    with ThreadPoolExecutor(runs) as pool:
        list(pool.map(lambda name: person.start(AGENT, PROMPT, name), names))
    ended = list(person.ended(names, looks.look).values())
    after = processor_seconds(cloud)
    steps = sum(len(person.steps(name)) for name in names)
    created = [instant(run["metadata"]["creationTimestamp"]) for run in ended]
    finished = [instant(run["status"]["finishedAt"]) for run in ended]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(person.gone, names))
    each = sum(end - begin for begin, end in zip(created, finished, strict=True)) / runs
    used = {name: max(0.0, seconds - before.get(name, 0.0)) for name, seconds in after.items()}
    return Burst(runs, steps, max(finished) - min(created), each, looks.most, used)


class Looks:
    """The most memory that was seen, by looks that are not too close to each other."""

    def __init__(self, cloud: TestCloud) -> None:
        self._cloud, self._next = cloud, time.monotonic()
        self.most: Memory = {}

    def look(self) -> None:
        if time.monotonic() < self._next:
            return
        self.most = max((self.most, memory(self._cloud)), key=_total)
        self._next = time.monotonic() + BETWEEN_LOOKS_S


def _total(seen: Memory) -> float:
    return sum(size for _, size in seen.values())


def _processor_table(bursts: list[Burst]) -> Table:
    purposes = sorted({name for burst in bursts for name in burst.processor})
    rows: list[tuple[Cell, ...]] = [
        (purpose, *(burst.processor.get(purpose, 0.0) * 1000 / burst.steps for burst in bursts))
        for purpose in purposes
    ]
    rows.append(("all", *(sum(burst.processor.values()) * 1000 / burst.steps for burst in bursts)))
    columns = ("ms a step, warm", *(f"{burst.runs} at once" for burst in bursts))
    note = (
        "What all of it costs the processors, whatever else they do. Polling by the one who measures (a list of runs"
        " every 0.1 s) is in `cloud` and `function nodus-api`; sandboxes that ended are in `below ecs-agent`."
    )
    return Table("Processor time", columns, rows, note)


def _memory_table(idle: Memory, most: Memory, runs: int) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (purpose, *idle.get(purpose, (0, 0.0)), *most.get(purpose, (0, 0.0)))
        for purpose in sorted(idle.keys() | most.keys())
    ]
    counts = [sum(number for number, _ in seen.values()) for seen in (idle, most)]
    rows.append(("all", counts[0], _total(idle), counts[1], _total(most)))
    columns = ("processes of", "idle", "MiB", f"most seen, {runs} at once", "MiB")
    note = (
        "Proportional set size: a page that processes share counts once. A template of each function stays."
    )
    return Table("Memory of the local cloud", columns, rows, note)
