"""The model of a turn: chosen once, kept in the run's head, the same for all of the turn's calls (NOD-057)."""

import json
from dataclasses import dataclass
from functools import lru_cache

from nodus_core.inference.target import Target
from nodus_core.journal.codec import from_row, to_row
from nodus_core.kernel.errors import CorruptRow
from nodus_core.kernel.objects import Run

CONFIGURED = "configured"
"""How the model of an On Demand run was chosen (NODQ-24)."""


@dataclass(frozen=True)
class Selection:
    """Where the turn's calls go, and how that was chosen: `jev`, `fallback` or `configured`."""

    target: Target
    chosen_by: str

    @classmethod
    def of(cls, run: Run) -> "Selection":
        """The selection that the run's head holds. Raises `CorruptRow` before one was made."""
        if run.selection is None:
            raise CorruptRow(f"run {run.uid}: a model call before a model was chosen")
        return _read(run.selection)

    def to_json(self) -> str:
        return json.dumps(to_row(self), default=str)


@lru_cache(maxsize=64)
def _read(text: str) -> Selection:
    """Every step of a turn asks for the same one."""
    return from_row(Selection, json.loads(text))
