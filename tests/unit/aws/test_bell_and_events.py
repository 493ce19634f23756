"""The bell of the sandboxes' connections, and lifecycle events on the bus."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ConnectTimeoutError
from nodus_core.aws.bell import WebSocketBell
from nodus_core.aws.events import EventBridgeEvents
from nodus_core.aws.patience import Patience
from nodus_core.journal.ports import Event
from nodus_core.kernel.errors import RetryableError, TerminalError

QUICK = Patience(tries=3, sleep=lambda _: None)


def test_the_bell_is_a_text_frame(stub: Callable[[str], Any]) -> None:
    client, answers = stub("apigatewaymanagementapi")
    answers.add_response("post_to_connection", {}, {"ConnectionId": "abc=", "Data": b"pull"})

    assert WebSocketBell(client).ring("abc=") is True


def test_a_connection_that_is_gone_is_no_error(stub: Callable[[str], Any]) -> None:
    client, answers = stub("apigatewaymanagementapi")
    answers.add_client_error("post_to_connection", "GoneException", http_status_code=410)

    assert WebSocketBell(client).ring("abc=") is False


@pytest.mark.parametrize(
    ("code", "status", "expected"),
    [("LimitExceededException", 429, RetryableError), ("ForbiddenException", 403, TerminalError)],
)
def test_a_bell_that_does_not_ring_is_told(
    stub: Callable[[str], Any], code: str, status: int, expected: type[Exception]
) -> None:
    client, answers = stub("apigatewaymanagementapi")
    answers.add_client_error("post_to_connection", code, http_status_code=status)

    with pytest.raises(expected, match=f"abc=.*{code}"):
        WebSocketBell(client).ring("abc=")


def test_no_answer_may_be_tried_again() -> None:
    class Unreachable:
        def post_to_connection(self, **_: Any) -> None:
            raise ConnectTimeoutError(endpoint_url="https://link.example")

    with pytest.raises(RetryableError, match="abc=: no answer"):
        WebSocketBell(Unreachable()).ring("abc=")


def _entry(kind: str, detail: str = "{}") -> dict[str, Any]:
    return {"EventBusName": "nodus", "Source": "nodus", "DetailType": kind, "Detail": detail}


def test_events_reach_the_bus(stub: Callable[[str], Any]) -> None:
    client, answers = stub("events")
    at = datetime(2030, 1, 2, tzinfo=UTC)
    entries = [_entry("RunOpened", '{"run": "c-1-1"}'), {**_entry("RunSettled"), "Time": at}]
    answers.add_response(
        "put_events",
        {"FailedEntryCount": 0, "Entries": [{"EventId": "1"}, {"EventId": "2"}]},
        {"Entries": entries},
    )

    EventBridgeEvents(client, "nodus").put([Event("RunOpened", {"run": "c-1-1"}), Event("RunSettled", at=at)])


def test_events_go_ten_at_a_time(stub: Callable[[str], Any]) -> None:
    client, answers = stub("events")
    names = [f"E{n}" for n in range(12)]
    for chunk in (names[:10], names[10:]):
        answers.add_response(
            "put_events",
            {"FailedEntryCount": 0, "Entries": [{"EventId": name} for name in chunk]},
            {"Entries": [_entry(name) for name in chunk]},
        )

    EventBridgeEvents(client, "nodus").put([Event(name) for name in names])
    EventBridgeEvents(client, "nodus").put([])


def test_only_what_was_refused_is_put_again(stub: Callable[[str], Any]) -> None:
    client, answers = stub("events")
    refused = {"ErrorCode": "ThrottlingException", "ErrorMessage": "slow down"}
    answers.add_response(
        "put_events",
        {"FailedEntryCount": 1, "Entries": [{"EventId": "1"}, refused, {"EventId": "3"}]},
        {"Entries": [_entry("A"), _entry("B"), _entry("C")]},
    )
    answers.add_response(
        "put_events", {"FailedEntryCount": 0, "Entries": [{"EventId": "2"}]}, {"Entries": [_entry("B")]}
    )

    EventBridgeEvents(client, "nodus", QUICK).put([Event("A"), Event("B"), Event("C")])


def test_what_stays_refused_is_an_error_that_names_it(stub: Callable[[str], Any]) -> None:
    client, answers = stub("events")
    refused = {"ErrorCode": "InternalFailure", "ErrorMessage": "try later"}
    for _ in range(3):
        answers.add_response("put_events", {"FailedEntryCount": 1, "Entries": [refused]})

    with pytest.raises(RetryableError, match=r"refused 1 events.*RunSettled: InternalFailure: try later"):
        EventBridgeEvents(client, "nodus", QUICK).put([Event("RunSettled")])


def test_moto_takes_the_shape(moto: Callable[..., Any]) -> None:
    client = moto("events")
    client.create_event_bus(Name="nodus")

    EventBridgeEvents(client, "nodus").put(
        [Event("RunSettled", {"run": "c-1-1"}, datetime(2030, 1, 1, tzinfo=UTC))]
    )
