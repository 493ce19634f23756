"""Steps a second with several runs at once, and the memory that the local cloud takes meanwhile."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from localstack.testing import TestCloud
from tests.bench.figures import Table
from tests.bench.person import AGENT, Person, instant
from tests.bench.processes import cool, memory

PROMPT = "Bench: 10 rounds"
NOTE = (
    "Each run: sandbox, route, ten rounds of a model call and a command, an answer (23 steps). From the first run's"
    " creation to the last one's end; clients, functions, emulated AWS and sandboxes share the processors."
)

Memory = dict[str, tuple[int, float]]


@dataclass(frozen=True)
class Burst:
    """Runs that were made at once: how many, their steps, the seconds, the most memory seen."""

    runs: int
    steps: int
    seconds: float
    each_s: float
    memory: Memory = field(default_factory=dict)

    @property
    def rate(self) -> float:
        return self.steps / self.seconds


def measure(cloud: TestCloud, person: Person, levels: list[int]) -> tuple[Table, Table]:
    """The tables of rates and of memory."""
    rows, idle, most = [], memory(cloud), Memory()
    for runs in levels:
        cool(cloud)
        cold = _burst(cloud, person, runs)
        warm = _burst(cloud, person, runs)
        rows.append((runs, cold.rate, warm.rate, cold.seconds, warm.seconds, cold.each_s, warm.each_s))
        most = max((most, cold.memory, warm.memory), key=_total)
    columns = (
        *("runs at once", "steps/s, cold", "warm", "s for all, cold", "warm"),
        *("mean s a run, cold", "warm"),
    )
    return Table("Runs at once", columns, rows, NOTE), _memory_table(idle, most, levels[-1])


def _burst(cloud: TestCloud, person: Person, runs: int) -> Burst:
    names = [person.new_run() for _ in range(runs)]
    seen: list[Memory] = []

    def look() -> None:
        # Twice is enough to see them all at work, and reading /proc costs processor time itself.
        if len(seen) < 2:
            seen.append(memory(cloud))

    with ThreadPoolExecutor(runs) as pool:
        list(pool.map(lambda name: person.start(AGENT, PROMPT, name), names))
    ended = list(person.ended(names, look).values())
    steps = sum(len(person.steps(name)) for name in names)
    created = [instant(run["metadata"]["creationTimestamp"]) for run in ended]
    finished = [instant(run["status"]["finishedAt"]) for run in ended]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(person.gone, names))
    each = sum(end - begin for begin, end in zip(created, finished, strict=True)) / runs
    return Burst(runs, steps, max(finished) - min(created), each, max(seen, key=_total))


def _total(seen: Memory) -> float:
    return sum(size for _, size in seen.values())


def _memory_table(idle: Memory, most: Memory, runs: int) -> Table:
    rows = [
        (purpose, *idle.get(purpose, (0, 0.0)), *most.get(purpose, (0, 0.0)))
        for purpose in sorted(idle.keys() | most.keys())
    ]
    rows.append(("all", sum(row[1] for row in rows), _total(idle), sum(row[3] for row in rows), _total(most)))
    columns = ("processes of", "idle", "MiB", f"most seen, {runs} at once", "MiB")
    note = (
        "Proportional set size: a page that processes share counts once. A template of each function stays."
    )
    return Table("Memory of the local cloud", columns, rows, note)
