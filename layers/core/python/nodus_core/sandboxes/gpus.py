"""The machines with GPUs that a deployment has for sandboxes: all of one kind, or none (NODQ-63, decision 30)."""

import json
from dataclasses import dataclass
from decimal import Decimal
from typing import Self


@dataclass(frozen=True)
class Gpus:
    """One machine of the kind: its name, how many GPUs, processors and GiB of memory a sandbox may have of it, and what
    an hour of the whole machine costs in USD. `count` 0: there are none."""

    type: str = ""
    count: int = 0
    cpu: Decimal = Decimal(0)
    memory: Decimal = Decimal(0)
    usd: Decimal = Decimal(0)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """From the variable `NODUS_GPUS` (docs/protocols.md §5); empty where there are none."""
        if not text:
            return cls()
        said = json.loads(text)
        return cls(
            str(said["type"]),
            int(said["count"]),
            Decimal(said["cpu"]),
            Decimal(said["memory"]),
            Decimal(said["usd"]),
        )

    def problem(self, gpus: int, cpu: Decimal, memory: Decimal) -> str | None:
        """Why a sandbox of this size, in processors and GiB, cannot be had; None: it can. One without GPUs always can."""
        if not gpus:
            return None
        if not self.count:
            return "must be 0: sandboxes have no GPU"
        if gpus > self.count or cpu > self.cpu or memory > self.memory:
            return (
                f"cannot be had with {cpu} processors and {memory} GiB: a machine with GPUs ({self.type}) has {self.count} "
                f"GPUs, and {self.cpu} processors and {self.memory} GiB for its sandboxes"
            )
        return None

    def hourly(self, gpus: int, cpu: Decimal, memory: Decimal) -> Decimal:
        """USD per hour of a sandbox that fits: the machine's price by whatever it takes the largest part of."""
        return self.usd * max(Decimal(gpus) / self.count, cpu / self.cpu, memory / self.memory)
