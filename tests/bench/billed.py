"""What one round of the hot loop is billed for in DynamoDB and S3: counted, not timed, so the machine does not matter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.bench.figures import Table
from tests.bench.loop import STEPS_A_ROUND, DelayedClock, InstantClock, Loop, Watch
from tests.bench.metered import Bill, Meter, MeteredPayloads, MeteredStore
from tests.bench.recording import DAEMON, WORKER, Recorder

TYPICAL_S = 0.1
"""How long the command takes whose figures go into the cost of a step."""

DELAYS_S = (0.0, TYPICAL_S, 1.0, 8.0)

USED = (
    ("write requests", "write_requests"),
    ("rows written", "rows_written"),
    ("write units (transactional, index)", "write_units"),
    ("bytes written", "bytes_written"),
    ("stream records", "stream_records"),
    ("of them to the reactor", "reactor_records"),
    ("read requests", "read_requests"),
    ("read units", "read_units"),
    ("S3 puts", "payload_puts"),
    ("S3 gets", "payload_gets"),
)

NOTE = (
    "For each step, half of a round in the steady state; the model call of a round and its command with 200 bytes of"
    f" output, which ends {TYPICAL_S:g} s after it was placed. Units by DynamoDB's rules from the rows that were"
    " written; index writes are counted double as their transaction is, which is the dearer reading of the rules."
)


@dataclass(frozen=True)
class Counted:
    """One run, counted. `rounds` of them; `whole` is all of it, admission included."""

    rounds: int
    meter: Meter

    def a_round(self, sender: str, numbers: Sequence[int] | None = None) -> dict[str, float]:
        """The mean of one round in the middle of the run, or of those given."""
        chosen = numbers or range(2, self.rounds)
        bill = self.meter.of(sender, chosen)
        return {name: count / len(chosen) for name, count in bill.items()}

    @property
    def outside_rounds(self) -> Bill:
        """Admission, preparation, the answer and the end: what a run costs whatever it does."""
        last = self.rounds + 1
        return sum((self.meter.of(sender, (0, last)) for sender in (WORKER, DAEMON)), Bill())


def count(rounds: int, delay_s: float) -> Counted:
    """Plays a run in memory. `delay_s` 0: the command is done when it is looked for again."""
    recorder = Recorder()
    meter = Meter(recorder)
    clock = DelayedClock(delay_s) if delay_s else InstantClock()
    watch = Watch(recorder.begin, recorder.as_daemon)
    Loop(MeteredStore(meter), MeteredPayloads(meter), rounds, watch, clock=clock).run()
    return Counted(rounds, meter)


def used_table(counted: Counted) -> Table:
    """The table of one step, worker and link apart."""
    worker, link = counted.a_round(WORKER), counted.a_round(DAEMON)
    rest = counted.outside_rounds
    rows = [
        (
            shown,
            worker.get(name, 0) / STEPS_A_ROUND,
            link.get(name, 0),
            (worker.get(name, 0) + link.get(name, 0)) / STEPS_A_ROUND,
            rest[name],
        )
        for shown, name in USED
    ]
    columns = ("what", "worker, a step", "link, a command", "together, a step", "a run beside its rounds")
    return Table("Billed operations", columns, rows, NOTE)


def reads_table(rounds: int) -> Table:
    """Read units of a round: by how long its command takes, and by how far the run has come."""
    rows = []
    for delay in DELAYS_S:
        counted = count(rounds, delay)
        third = rounds // 3
        early, late = range(2, third), range(rounds - third, rounds)
        rows.append(
            (
                f"{delay:g} s",
                counted.a_round(WORKER).get("read_requests"),
                counted.a_round(WORKER).get("read_units"),
                counted.a_round(DAEMON, early).get("read_units"),
                counted.a_round(DAEMON, late).get("read_units"),
            )
        )
    columns = (
        "command takes",
        "worker's read requests",
        "its read units",
        "link's read units, early",
        f"late (round {rounds})",
    )
    note = "For each round. What grows with the length of the run is paid again by every later command."
    return Table("Reads while a command runs", columns, rows, note)
