"""Commits on the time for which a run's texts are kept (NOD-077).

close, which begins it ──► due after 30 days ──► strip … ──► over
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from nodus_core.journal.codec import SHAPE
from nodus_core.journal.keys import keep_key
from nodus_core.journal.lines import due
from nodus_core.journal.store import Delete, Operation, Present, Put, Row
from nodus_core.journal.writer import Writer

KEPT = timedelta(days=30)
"""How long a run's texts are kept after its end (NOD-077, NOD-594)."""


class Keeping:
    """Commits that end the keeping of texts. Each may be repeated."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def strip(self, rows: Sequence[Row]) -> None:
        """Rows of a closed line as they are without their texts; nobody else writes them any more.

        Condition: each is there (else the run is being removed). Raises `ConditionFailed`.
        """
        self._writer.commit("strip-texts", *(Put(row, when=Present()) for row in rows))

    def over(self, conversation: str) -> None:
        """All texts are gone: nothing is due any more."""
        self._writer.commit("keeping-over", Delete(keep_key(conversation)))


def kept(conversation: str, now: datetime) -> Operation:
    """Part of the commit that closes a conversation: its texts are kept from now on, for a time."""
    key = keep_key(conversation)
    return Put({"pk": key.pk, "sk": key.sk, "v": SHAPE, **due(key.pk, now + KEPT)})


def forgotten(conversation: str) -> Operation:
    """Part of the commit that removes a run."""
    return Delete(keep_key(conversation))
