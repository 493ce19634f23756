"""What is compared, for every engine alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

from tests.bench.figures import Cell, Spread


@dataclass(frozen=True)
class Wide:
    """Runs at once, and the steps of each."""

    runs: int
    steps: int


WIDE = Wide(50, 20)


@dataclass(frozen=True)
class Kill:
    """What a kill -9 cost: steps whose effect happened again, seconds until the next new effect."""

    repeated: int
    resumed_s: float


@dataclass(frozen=True)
class Compared:
    """One engine's figures."""

    name: str
    step_ms: Spread
    step_kib: Spread
    wide_rate: Spread
    kills: Sequence[Kill]

    def row(self) -> tuple[Cell, ...]:
        repeated = mean(kill.repeated for kill in self.kills)
        resumed = Spread.of([kill.resumed_s for kill in self.kills])
        return (self.name, self.step_ms, self.wide_rate, f"{repeated:.2g}", resumed, self.step_kib)
