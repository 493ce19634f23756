"""The floor: the very writes of a run, sent again on fresh keys by the bare wire, with nothing else around them.

Each is prepared before the clock runs. Conditions and sizes are those of the recorded run, and every write of
the run is among them, so that each finds the rows that its condition needs.
"""

from __future__ import annotations

import json
import time
import uuid
from collections import defaultdict
from collections.abc import Sequence

from nodus_core.aws.dynamodb_wire import Wire

from tests.bench.recording import Sent


class Floor:
    """The writes of one recorded run, to be played once, round by round.

    Args:
        sent: what the run sent.
        name: the word of the run that all its keys hold.
        fresh: another one, equally long, that takes its place.

    `spent` then has the seconds of the writes, by sender and round.
    """

    def __init__(self, wire: Wire, sent: Sequence[Sent], name: str, fresh: str) -> None:
        if len(name) != len(fresh):
            raise ValueError(f"{fresh!r} makes rows of another size than {name!r}")
        self._wire = wire
        self._writes: dict[int, list[Sent]] = defaultdict(list)
        for each in sent:
            if not each.is_read:
                self._writes[each.round].append(_renamed(each, name, fresh))
        self.spent: dict[tuple[str, int], float] = defaultdict(float)

    def play(self, number: int) -> None:
        """Sends the writes of a round (0: all before the first); rounds in order, from 0."""
        for each in self._writes.pop(number, []):
            started = time.perf_counter()
            self._wire.call(each.operation, each.body)
            self.spent[each.sender, number] += time.perf_counter() - started


def _renamed(sent: Sent, name: str, fresh: str) -> Sent:
    body = json.loads(json.dumps(sent.body).replace(name, fresh))
    if "ClientRequestToken" in body:
        body["ClientRequestToken"] = uuid.uuid4().hex
    return Sent(sent.operation, body, sent.sender, sent.round, sent.seconds)
