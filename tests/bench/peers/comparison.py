"""The table of all engines, Nodus among them."""

from __future__ import annotations

import random

from localstack.testing import TestCloud
from tests.bench.figures import Table
from tests.bench.peers import engines, nodus
from tests.bench.peers.figures import WIDE
from tests.bench.person import Person

KILLS = 7

NOTE = (
    "Ms a step: one run alone, a step after the other, in the hot loop; what a step does costs nothing. Steps/s:"
    f" {WIDE.runs} runs at once of {WIDE.steps} steps (ours: 23). Repeated: of the steps before a kill -9 of the process"
    " that works on the run, those whose effect happened twice, a kill. Resume: from the kill to the next new effect."
    " KiB: what the process that stores the steps had written to disk. The engines are libraries over a SQLite file,"
    " with steps that are function calls: no service, no authorization, no sandbox. Ours are model calls and commands"
    " in an isolated sandbox through emulated AWS; the wide and the killed runs go through the whole deployed cloud."
)


def measure(cloud: TestCloud, person: Person, rounds: int, repeat: int) -> Table:
    """Raises BenchError when an engine cannot be installed, or does not do its work."""
    engines.install()
    others = [engines.compared(each, repeat, KILLS, random.Random(KILLS)) for each in engines.ENGINES]
    ours = nodus.compared(cloud, person, rounds, repeat, KILLS)
    columns = ("engine", "ms a step", "steps/s, 50 at once", "repeated a kill", "s to resume", "KiB a step")
    return Table("Beside other engines", columns, [each.row() for each in (ours, *others)], NOTE)
