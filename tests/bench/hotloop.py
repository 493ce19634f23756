"""Milliseconds for each journaled step of the hot loop, against the bare writes and in memory."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from statistics import median

from nodus_core.aws.dynamodb_store import DynamoDbStore
from nodus_core.aws.dynamodb_wire import Wire
from nodus_core.aws.s3_payloads import S3Payloads
from nodus_core.testing.memory_payloads import MemoryPayloads
from nodus_core.testing.memory_store import MemoryStore

from localstack.endpoints import Cloud
from tests.bench import cloud as clouds
from tests.bench.figures import Spread, Table
from tests.bench.floor import Floor
from tests.bench.loop import STEPS_A_ROUND, Loop, Watch, new_name
from tests.bench.recording import DAEMON, WORKER, Recorder, RecordingWire, Sent, TimedStore

NOTE = (
    "ms, median [min-max] over all rounds of all repetitions; a step is half a round (one model call, one command,"
    " both journaled). The floor is the worker's own writes of an equal run, sent again on fresh keys by the same wire"
    " with nothing else, a round of it behind each round of the run; the ratio is of the medians of each repetition."
    " The link's half is what the functions of the sandbox link do for one command (prove, pull, claim; prove, done),"
    " here in the same process and no part of the worker's figures."
)

THIRDS = ("first", "second", "last")


@dataclass
class Samples:
    """Milliseconds by name, one entry for each round of each repetition."""

    of: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def add(self, name: str, seconds: float, parts: int = 1) -> None:
        self.of[name].append(seconds * 1000 / parts)

    def spread(self, name: str) -> Spread:
        return Spread.of(self.of[name])

    def ratio(self, name: str, floor_name: str, repeat: int) -> Spread:
        """Of the medians of each repetition: whatever else the machine did then, it did to both."""
        pairs = zip(self._parts(name, repeat), self._parts(floor_name, repeat), strict=True)
        return Spread.of([median(values) / median(floors) for values, floors in pairs])

    def _parts(self, name: str, repeat: int) -> list[list[float]]:
        values = self.of[name]
        each = len(values) // repeat
        return [values[start : start + each] for start in range(0, len(values), each)]


def measure(cloud: Cloud, rounds: int, repeat: int) -> tuple[Table, Table]:
    """The hot loop's table, and the one of how it grows with a run's length."""
    samples, wire = Samples(), clouds.wire(cloud)
    with clouds.own_table(cloud) as table, clouds.own_bucket(cloud) as bucket:
        place = Place(wire, table, S3Payloads(clouds.client(cloud, "s3"), bucket), rounds)
        # Not measured: it imports, connects and compiles. Its writes are the first repetition's floor.
        loop, sent = place.recorded(None)
        for _ in range(repeat):
            floor = Floor(wire, sent, loop.name, new_name())
            loop, sent = place.recorded(floor)
            _take(samples, loop.watch, sent, rounds)
            _take_floor(samples, floor, rounds)
            _take_memory(samples, rounds)
    return _table(samples, repeat), _growth(samples)


@dataclass(frozen=True)
class Place:
    """Where the runs of the hot loop write."""

    wire: Wire
    table: str
    payloads: S3Payloads
    rounds: int

    def recorded(self, floor: Floor | None) -> tuple[Loop, list[Sent]]:
        """A run and all it sent. Between its rounds `floor` is played, another run's, round by round."""
        recorder = Recorder()

        def begin(number: int) -> None:
            recorder.begin(number)
            if floor is not None:
                floor.play(number)

        watch = Watch(begin, recorder.as_daemon)
        store = DynamoDbStore(RecordingWire(self.wire, recorder), self.table)
        loop = Loop(store, self.payloads, self.rounds, watch)
        loop.run()
        return loop, recorder.sent


def _take(samples: Samples, watch: Watch, sent: list[Sent], rounds: int) -> None:
    for number, (whole, link) in enumerate(watch.rounds(), start=1):
        mine = [each for each in sent if (each.sender, each.round) == (WORKER, number)]
        writes = sum(each.seconds for each in mine if not each.is_read)
        reads = sum(each.seconds for each in mine if each.is_read)
        third = THIRDS[(number - 1) * len(THIRDS) // rounds]
        for name in ("loop", f"loop {third}"):
            samples.add(name, whole - link, STEPS_A_ROUND)
        samples.add("writes", writes, STEPS_A_ROUND)
        samples.add("reads", reads, STEPS_A_ROUND)
        for name in ("code", f"code {third}"):
            samples.add(name, whole - link - writes - reads, STEPS_A_ROUND)
        for name in ("link", f"link {third}"):
            samples.add(name, link)


def _take_floor(samples: Samples, floor: Floor, rounds: int) -> None:
    spent = floor.spent
    for number in range(1, rounds + 1):
        samples.add("floor", spent[WORKER, number], STEPS_A_ROUND)
        samples.add("link floor", spent[DAEMON, number])


def _take_memory(samples: Samples, rounds: int) -> None:
    """Our code alone: what the double takes, which copies every row, is taken off."""
    store = TimedStore(MemoryStore())
    marks: list[float] = []
    watch = Watch(lambda _: marks.append(store.worker_seconds))
    watch.as_daemon = store.as_daemon
    Loop(store, MemoryPayloads(), rounds, watch).run()
    for (whole, link), before, after in zip(watch.rounds(), marks, marks[1:], strict=False):
        samples.add("memory", whole - link - (after - before), STEPS_A_ROUND)


def _table(samples: Samples, repeat: int) -> Table:
    rows = [
        ("a step over the local cloud", samples.spread("loop")),
        ("- the store's writes on the wire", samples.spread("writes")),
        ("- its reads on the wire", samples.spread("reads")),
        ("- our code, the store's encoding included", samples.spread("code")),
        ("floor: the same writes alone", samples.spread("floor")),
        ("ratio to the floor", samples.ratio("loop", "floor", repeat)),
        ("our code over a store in memory, without that store", samples.spread("memory")),
        ("the link's half, for each command", samples.spread("link")),
        ("its floor", samples.spread("link floor")),
        ("ratio to the floor", samples.ratio("link", "link floor", repeat)),
    ]
    return Table("Hot loop", ("what", "ms"), rows, NOTE)


def _growth(samples: Samples) -> Table:
    parts = ("loop", "code", "link")
    rows = [
        (f"{third} third of the rounds", *(samples.spread(f"{part} {third}") for part in parts))
        for third in THIRDS
    ]
    note = "Figures that grow show what costs more the longer a run is; none should."
    columns = ("rounds", "ms a step", "of it our code", "link, ms a command")
    return Table("Hot loop along a run", columns, rows, note)
