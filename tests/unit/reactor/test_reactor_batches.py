"""A batch of the journal's stream: every kick is tried, whatever the others come to, and events come last."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from nodus_core.conversations.kicks import Kicks
from nodus_core.conversations.reactions import Reactions
from nodus_core.journal.ports import Event
from nodus_core.kernel.errors import CorruptRow, NodusError, RetryableError, TerminalError

from functions.reactor import handler as reactor


@dataclass
class Recorded:
    """Kicks and a bus in one, with what each line, or the bus, raises."""

    problems: dict[str, NodusError] = field(default_factory=dict[str, NodusError])
    done: list[str] = field(default_factory=list[str])

    def kick(self, line: str) -> bool:
        self._do(line)
        return True

    def put(self, events: Sequence[Event]) -> None:
        self._do("bus " + " ".join(event.detail["name"] for event in events))

    def _do(self, name: str) -> None:
        self.done.append(name)
        if (problem := self.problems.get(name.split(" ", maxsplit=1)[0])) is not None:
            raise problem


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Recorded:
    made = Recorded()

    class Core:
        reactions = Reactions(cast("Kicks", made), made)

    monkeypatch.setattr(reactor, "core", lambda environment: Core)
    monkeypatch.setattr(reactor.metrics.provider, "namespace", "Nodus")
    return made


def record(number: int, pk: str, sk: str = "head") -> dict[str, Any]:
    image = {"pk": {"S": pk}, "sk": {"S": sk}, "outbox": {"S": "x"}}
    return {"dynamodb": {"SequenceNumber": str(number), "NewImage": image}}


BATCH = [
    record(1, "obj#acme#web#AgentRun", "r1"),
    record(2, "conv#bad"),
    record(3, "obj#acme#web#AgentRun", "r2"),
    record(4, "conv#good"),
]


class Context:
    function_name = "nodus-reactor"
    memory_limit_in_mb = 512
    invoked_function_arn = "arn:aws:lambda:eu-central-1:123456789012:function:nodus-reactor"
    aws_request_id = "1"


def failed(recorded: Recorded) -> list[str]:
    answer = reactor.handler({"Records": BATCH}, cast("Any", Context()))
    return [item["itemIdentifier"] for item in answer["batchItemFailures"]]


def test_events_are_put_together_after_all_kicks(recorded: Recorded) -> None:
    assert failed(recorded) == []
    assert recorded.done == ["bad", "good", "bus r1 r2"]


@pytest.mark.parametrize(
    ("error", "again"),
    [(CorruptRow("row"), []), (TerminalError("denied"), []), (RetryableError("busy"), ["2"])],
)
def test_a_line_that_cannot_be_kicked_stops_no_other(
    recorded: Recorded, error: NodusError, again: list[str]
) -> None:
    recorded.problems["bad"] = error
    assert failed(recorded) == again
    assert recorded.done == ["bad", "good", "bus r1 r2"]


@pytest.mark.parametrize(
    ("error", "again"), [(TerminalError("no such bus"), []), (RetryableError("busy"), ["1", "3"])]
)
def test_a_sick_bus_stops_no_kick(recorded: Recorded, error: NodusError, again: list[str]) -> None:
    recorded.problems["bus"] = error
    assert failed(recorded) == again
    assert recorded.done[:2] == ["bad", "good"]
