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

Rounds = dict[tuple[str, int], float]
"""Seconds of the writes, by sender and round."""


def floor(wire: Wire, sent: Sequence[Sent], name: str, fresh: str) -> Rounds:
    """Sends the writes among `sent` again, in order, with `fresh` wherever `name` stood (equally long)."""
    if len(name) != len(fresh):
        raise ValueError(f"{fresh!r} makes rows of another size than {name!r}")
    writes = [_renamed(each, name, fresh) for each in sent if not each.is_read]
    spent: Rounds = defaultdict(float)
    for each in writes:
        started = time.perf_counter()
        wire.call(each.operation, each.body)
        spent[each.sender, each.round] += time.perf_counter() - started
    return dict(spent)


def _renamed(sent: Sent, name: str, fresh: str) -> Sent:
    body = json.loads(json.dumps(sent.body).replace(name, fresh))
    if "ClientRequestToken" in body:
        body["ClientRequestToken"] = uuid.uuid4().hex
    return Sent(sent.operation, body, sent.sender, sent.round, sent.seconds)
