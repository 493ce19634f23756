"""Commits on asks: questions to a running daemon, in a few places of its sandbox (decision 21).

free ──place──► open ──answer──► answered ──take──► free
                  └── its time is over ────────────► free
"""

from datetime import datetime, timedelta

from nodus_core.journal.keys import ask_answer_key, ask_key, sandbox_key
from nodus_core.journal.store import Absent, Below, Check, Delete, Either, Equals, Put, Update, both
from nodus_core.journal.writer import Writer, stored
from nodus_core.kernel.sandboxes import Ask, AskAnswer
from nodus_core.kernel.states import SandboxState
from nodus_core.kernel.times import stamp

PLACES = 16
"""Asks to one sandbox at a time: a bound of what a flood of them costs, and of what one pull reads."""

KEPT = timedelta(hours=1)
"""After which the table may remove what nobody has taken, when it finds time."""


class Asks:
    """Each commit raises `ConditionFailed`."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def place(self, ask: Ask, now: datetime, *, works: bool) -> None:
        """An ask goes to its sandbox; `works`: it is work, which keeps a Sandbox from being idle.

        Condition: its place is free, and the sandbox runs with its saved folder in place.
        """
        key, place = sandbox_key(ask.sandbox), ask_key(ask.sandbox, ask.place)
        runs = both(Equals("state", SandboxState.RUNNING.value), Absent("restore"))
        noted = Update(key, when=runs, assign={"worked_at": stamp(now)}, remove=("outbox",))
        self._writer.commit(
            "place-ask",
            Put(
                stored(place, ask, ttl=_ttl(ask.ends_at)),
                when=Either((Absent(), Below("ends_at", stamp(now)))),
            ),
            noted if works else Check(key, runs),
        )

    def answer(self, sandbox: str, place: int, answer: AskAnswer, now: datetime) -> None:
        """The daemon's word. Condition: this ask still stands there, and has no answer."""
        self._writer.commit(
            "answer-ask",
            Update(
                ask_key(sandbox, place),
                when=both(Equals("id", answer.id), Equals("answered", False)),
                assign={"answered": True},
            ),
            Put(stored(ask_answer_key(sandbox, place), answer, ttl=_ttl(now))),
        )

    def take(self, sandbox: str, place: int, ask: str) -> None:
        """Whoever has asked has heard, or waits no longer: the place is free. Condition: this ask stands there."""
        self._writer.commit(
            "take-answer",
            Delete(ask_key(sandbox, place), when=Equals("id", ask)),
            Delete(ask_answer_key(sandbox, place)),
        )


def _ttl(since: datetime) -> int:
    return int((since + KEPT).timestamp())
