"""Watching: each change once, over windows that end, connections that break and positions that expire."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import nodus
import pytest
from nodus import errors
from nodus._waiting import SERVER_AWAY_SECONDS
from nodus._wire import Answer

from tests.unit.client.fake_wire import Played, Player, answer, query_of, refusal

Play = Callable[[Iterable[Played]], Player]


@pytest.fixture(params=["blocking", "awaiting"])
def play(request: pytest.FixtureRequest) -> Play:
    """A client of each kind whose windows take 20 seconds."""
    return lambda answers: Player(awaits=request.param == "awaiting", answers=answers, spends=20)


def thing(name: str, version: int, uid: str = "u", **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "uid": f"{name}-{uid}", "resourceVersion": str(version)}
    return {"apiVersion": "nodus.dev/v1", "kind": "Agent", "metadata": metadata} | more


def listed(version: int, *things: dict[str, Any], **more: str) -> Answer:
    return answer({"metadata": {"resourceVersion": str(version)} | more, "items": list(things)})


def window(*events: tuple[str, dict[str, Any]]) -> Answer:
    lines = [json.dumps({"type": word, "object": body}) for word, body in events]
    return answer(("\n".join(lines) + "\n").encode() if lines else b"")


def bookmark(version: int) -> tuple[str, dict[str, Any]]:
    return "BOOKMARK", {"kind": "Agent", "metadata": {"resourceVersion": str(version)}}


def expired() -> tuple[str, dict[str, Any]]:
    return "ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}


def watch(client: Any, **arguments: Any) -> Any:
    return client.agents.watch(**arguments)


def told(events: list[nodus.Event]) -> list[tuple[str, str, str]]:
    return [
        (event.type, event.object.metadata.name, event.object.metadata.resourceVersion) for event in events
    ]


def positions(player: Player) -> list[str | None]:
    return [query_of(request).get("resourceVersion") for request in player.wire.seen]


def test_all_that_is_there_comes_first_and_then_what_changes(play: Play) -> None:
    player = play(
        [
            listed(5, thing("a", 3), **{"continue": "next"}),
            listed(6, thing("b", 4)),
            window(("MODIFIED", thing("a", 7)), ("ADDED", thing("c", 8))),
            window(("DELETED", thing("b", 9)), bookmark(12)),
            window(("MODIFIED", thing("c", 13))),
        ]
    )
    events = player.first(6, watch)
    assert told(events) == [
        ("ADDED", "a", "3"),
        ("ADDED", "b", "4"),
        ("MODIFIED", "a", "7"),
        ("ADDED", "c", "8"),
        ("DELETED", "b", "9"),
        ("MODIFIED", "c", "13"),
    ]
    # The position of the first page: what changed while the second was read is told again.
    assert positions(player) == [None, None, "5", "8", "12"]
    assert query_of(player.wire.seen[2]) == {
        "watch": "true",
        "resourceVersion": "5",
        "timeoutSeconds": "20",
        "allowWatchBookmarks": "true",
    }


def test_what_is_gone_comes_as_it_was_known_last(play: Play) -> None:
    """The server tells only the metadata of what is gone, and may tell of what this watch never had."""
    gone = {"metadata": thing("a", 9)["metadata"]}
    stranger = {"metadata": thing("b", 10)["metadata"]}
    windows = [window(("DELETED", gone), ("DELETED", stranger), ("ADDED", thing("c", 11)))]
    known = thing("a", 3, spec={"system": "x"})
    known["metadata"]["creationTimestamp"] = "2030-01-01T00:00:00.000Z"
    events = play([listed(5, known), *windows]).first(3, watch)
    assert told(events[1:]) == [("DELETED", "a", "9"), ("ADDED", "c", "11")]
    assert (events[1].object.kind, events[1].object.spec.system) == ("Agent", "x")
    assert events[1].object.metadata.creationTimestamp == "2030-01-01T00:00:00.000Z"
    first = play(windows).first(2, lambda client: watch(client, resource_version="5"))
    assert told(first) == [("DELETED", "a", "9"), ("DELETED", "b", "10")]


def test_selectors_and_a_position_are_asked_with(play: Play) -> None:
    player = play([window(("ADDED", thing("a", 9)))])
    arguments = {"field_selector": "metadata.name=a", "label_selector": "team=web", "resource_version": "7"}
    assert told(player.first(1, lambda client: watch(client, **arguments))) == [("ADDED", "a", "9")]
    asked = query_of(player.wire.seen[0])
    assert (asked["fieldSelector"], asked["labelSelector"]) == ("metadata.name=a", "team=web")
    assert asked["resourceVersion"] == "7"


def test_quiet_windows_are_asked_again_from_where_they_ended(play: Play) -> None:
    player = play([listed(5), window(), window(bookmark(8)), window(), window(("ADDED", thing("a", 9)))])
    assert len(player.first(1, watch)) == 1
    assert positions(player) == [None, "5", "5", "8", "8"]
    assert player.wire.pauses == []


def test_a_change_that_is_told_again_comes_once(play: Play) -> None:
    """A server that reads a little behind its position, so as to miss nothing, repeats itself (decision 2)."""
    repeated = (("ADDED", thing("a", 6)), ("MODIFIED", thing("a", 7)), ("DELETED", thing("a", 8)))
    player = play(
        [
            listed(5),
            window(*repeated),
            window(*repeated, ("ADDED", thing("a", 9, "again"))),
            window(*repeated, ("ADDED", thing("a", 9, "again")), ("ADDED", thing("z", 10))),
        ]
    )
    assert told(player.first(5, watch)) == [
        ("ADDED", "a", "6"),
        ("MODIFIED", "a", "7"),
        ("DELETED", "a", "8"),
        ("ADDED", "a", "9"),
        ("ADDED", "z", "10"),
    ]


@pytest.mark.parametrize("how", [refusal(410, "Expired"), window(expired())])
def test_an_expired_position_is_made_good_by_the_differences(play: Play, how: Answer) -> None:
    player = play(
        [
            listed(5, thing("same", 1), thing("changed", 2), thing("gone", 3), thing("replaced", 4)),
            how,
            listed(90, thing("same", 1), thing("changed", 50), thing("replaced", 60, "u2"), thing("new", 70)),
            window(("MODIFIED", thing("new", 91))),
        ]
    )
    assert told(player.first(10, watch))[4:] == [
        ("DELETED", "gone", "3"),
        ("DELETED", "replaced", "4"),
        ("MODIFIED", "changed", "50"),
        ("ADDED", "replaced", "60"),
        ("ADDED", "new", "70"),
        ("MODIFIED", "new", "91"),
    ]
    assert positions(player)[-1] == "90"


@pytest.mark.parametrize("how", [refusal(410, "Expired"), window(expired())])
def test_an_expired_position_is_raised_if_that_is_wanted(play: Play, how: Answer) -> None:
    player = play([how])
    with pytest.raises(errors.ExpiredError) as caught:
        player.first(1, lambda client: watch(client, resource_version="7", resume=False))
    assert (caught.value.code, caught.value.reason) == (410, "Expired")


def test_an_error_after_events_does_not_take_them_away(play: Play) -> None:
    player = play([listed(5), window(("ADDED", thing("a", 6)), expired()), window(expired())])
    events = player.first(1, lambda client: watch(client, resume=False))
    assert told(events) == [("ADDED", "a", "6")]
    with pytest.raises(errors.ExpiredError):
        player.first(1, lambda client: watch(client, resource_version="6", resume=False))


def test_broken_connections_are_outlasted_with_growing_pauses(play: Play) -> None:
    away = errors.ServerUnreachableError("away")
    player = play([listed(5), *[away] * 6, window(("ADDED", thing("a", 9)))])
    player.wire.spends = 0
    assert len(player.first(1, watch)) == 1
    between = [pause for pause in player.wire.pauses if pause >= 0.1]
    assert positions(player) == [None] + ["5"] * 7
    assert between


def test_a_server_that_stays_away_is_told(play: Play) -> None:
    away = errors.ServerUnreachableError("away")
    player = play([listed(5), *[away] * 1000])
    player.wire.spends = 0.01
    with pytest.raises(errors.ServerUnreachableError):
        player.first(1, watch)
    assert SERVER_AWAY_SECONDS < player.wire.now < 2 * SERVER_AWAY_SECONDS


def test_a_server_that_never_answered_is_told_at_once(play: Play) -> None:
    player = play([errors.ServerUnreachableError("away")] * 9)
    with pytest.raises(errors.ServerUnreachableError):
        player.first(1, watch)


def test_a_server_that_does_not_wait_is_not_stormed(play: Play) -> None:
    player = play([listed(5), *[window()] * 20, window(("ADDED", thing("a", 9)))])
    player.wire.spends = 0
    player.first(1, watch)
    assert len(player.wire.pauses) == 20
    assert player.wire.pauses[0] < 1 < player.wire.pauses[-1] <= 10


def test_a_position_that_expires_at_once_is_not_stormed(play: Play) -> None:
    player = play([listed(5), *[refusal(410, "Expired"), listed(5)] * 10, window(("ADDED", thing("a", 9)))])
    player.wire.spends = 0
    player.first(1, watch)
    assert len(player.wire.pauses) >= 10
    assert max(player.wire.pauses) > 1


def test_a_timeout_ends_it(play: Play) -> None:
    player = play([listed(5), *[window()] * 9])
    assert player.first(None, lambda client: watch(client, timeout=50)) == []
    assert [query_of(request).get("timeoutSeconds") for request in player.wire.seen] == [None, "20", "10"]


@pytest.mark.parametrize(
    "content",
    [
        b"<html>sign in</html>\n",
        b"[1]\n",
        b'"x"\n',
        b'{"type":"ADDED"}\n',
        b'{"type":"ADDED","object":[]}\n',
        b'{"type":7,"object":{}}\n',
        b'{"type":"ADDED","object":{"metadata":"x"}}\n',
        b'{"type":"ADDED","object":{"metadata":{"resourceVersion":7}}}\n',
        b'{"type":"ADDED","object":' + b'{"a":' * 100_000,
        b'{"type":"ADDED","object":{"metadata":{"resourceVersion":"1"',
    ],
)
def test_what_is_no_window_is_said(play: Play, content: bytes) -> None:
    player = play([listed(5), answer(content)])
    with pytest.raises(errors.UnexpectedAnswerError):
        player.first(1, watch)


def test_events_of_a_later_server_are_left_out(play: Play) -> None:
    player = play([listed(5), window(("RENAMED", thing("a", 6)), ("ADDED", thing("b", 7)))])
    assert told(player.first(1, watch)) == [("ADDED", "b", "7")]


@pytest.mark.parametrize("code", ["x", None, 500])
def test_an_error_without_a_meaning_is_an_error_of_the_server(play: Play, code: Any) -> None:
    failed = ("ERROR", {"kind": "Status", "code": code, "reason": "", "message": "broken"})
    player = play([window(failed)] * 9)
    with pytest.raises(errors.ServerError):
        player.first(1, lambda client: watch(client, resource_version="7"))
