"""Terminals by REST: opened once for a request key, let in by a ticket that works once and for one of them only."""

import base64
import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from nodus_core.kernel.errors import Refusal
from nodus_core.sandboxes.relay import Relay
from nodus_core.testing.scripted_sandbox import RUNNING, exited

from tests.unit.api.rest import Reply, Rest, manifest

TERMINALS = "sandboxes/mine/terminals"


class Wires:
    """Open connections, and what was sent over each."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, dict[str, Any]]] = []
        self.gone: set[str] = set()

    def post(self, connection: str, text: str) -> bool:
        if connection in self.gone:
            return False
        self.sent.append((connection, json.loads(text)))
        return True

    def to(self, connection: str) -> list[dict[str, Any]]:
        return [message for to, message in self.sent if to == connection]


def behaves(kind: str, request: dict[str, Any]) -> dict[str, Any]:
    if kind == "terminal" and request["command"] == "ends":
        return exited("", code=5)
    return RUNNING if kind == "terminal" else exited("out\n")


@pytest.fixture
def rest() -> Rest:
    made = Rest(behaviour=behaves)
    for name in ("mine", "other"):
        made.post("sandboxes", manifest("Sandbox", name, {"idleTimeout": "10m"}))
    made.world.pass_time(1)
    return made


@pytest.fixture
def wires() -> Wires:
    return Wires()


@pytest.fixture
def relay(rest: Rest, wires: Wires) -> Relay:
    return Relay(rest.world.outside, wires, rest.world.clock)


def opens(rest: Rest, key: str = "k", path: str = TERMINALS, **more: Any) -> Reply:
    return rest.post(path, {"requestKey": key, **more})


def ticket(reply: Reply) -> str:
    return parse_qs(urlsplit(reply.json["status"]["connect"]["url"]).query)["ticket"][0]


def machine(rest: Rest, name: str = "mine") -> str:
    uid = rest.get(f"sandboxes/{name}").json["metadata"]["uid"]
    return f"{uid}-s1"


def bell(rest: Rest, name: str, connection: str) -> None:
    rest.world.outside.sandboxes.attach(machine(rest, name), connection, rest.world.clock.now())


def says(**frame: Any) -> str:
    return json.dumps({"action": "terminal", "frame": frame})


# --- by REST ---


@pytest.mark.req("NOD-444")
def test_a_terminal_is_opened_with_a_ticket_and_shown_without(rest: Rest) -> None:
    opened = opens(rest, columns=120, rows=40, workingDir="/workspace/sub", term="screen")
    assert opened.code == 202
    assert opened.json["spec"] == {
        "workingDir": "/workspace/sub",
        "columns": 120,
        "rows": 40,
        "term": "screen",
    }
    url = opened.json["status"]["connect"]["url"]
    assert url.startswith("wss://link.test/v1?ticket=")
    assert len(ticket(opened)) >= 43
    name = opened.json["metadata"]["name"]
    rest.world.pass_time(1)
    assert rest.get(f"{TERMINALS}/{name}").json["status"]["state"] == "Running"
    listed = rest.get(TERMINALS).json
    assert [item["metadata"]["name"] for item in listed["items"]] == [name]
    assert "ticket" not in json.dumps(listed)
    assert not rest.get("sandboxes/mine/commands").json["items"]


@pytest.mark.req("NOD-442", "NOD-443", "FLD-16")
def test_a_lost_answer_never_opens_two(rest: Rest) -> None:
    first, again = opens(rest), opens(rest)
    assert (first.code, again.code) == (202, 200)
    assert first.json["metadata"] == again.json["metadata"]
    assert ticket(first) != ticket(again)
    other = opens(rest, command="other")
    assert (other.code, other.json["reason"]) == (409, "IdempotencyKeyConflict")
    rest.world.pass_time(1)
    assert len(rest.world.sandboxes.effects) == 1


@pytest.mark.req("NOD-438")
def test_a_machine_that_stands_still_takes_none_and_ends_those_it_had(rest: Rest) -> None:
    name = opens(rest).json["metadata"]["name"]
    rest.world.pass_time(1)
    rest.post("sandboxes/mine/stop")
    rest.world.settle()
    for refused in (opens(rest, "k2"), rest.post(f"{TERMINALS}/{name}/attach")):
        assert (refused.code, refused.json["reason"]) == (409, "SandboxNotRunning")
    assert rest.get(f"{TERMINALS}/{name}").json["status"]["state"] == "Lost"
    assert rest.get(TERMINALS).json["items"] == []
    assert not [daemon for daemon in rest.world.sandboxes.daemons.values() if daemon.alive][1:]


def test_an_ended_one_tells_its_exit_code_and_can_be_read_for_a_while(rest: Rest) -> None:
    name = opens(rest, command="ends").json["metadata"]["name"]
    rest.world.pass_time(1)
    status = rest.get(f"{TERMINALS}/{name}").json["status"]
    assert (status["state"], status["exitCode"]) == ("Exited", 5)
    assert rest.post(f"{TERMINALS}/{name}/attach").code == 200
    assert rest.post(f"{TERMINALS}/{name}/close").code == 200
    rest.world.pass_time(301)
    late = rest.post(f"{TERMINALS}/{name}/attach")
    assert (late.code, late.json["reason"]) == (409, "Conflict")
    assert "connect" not in opens(rest, command="ends").json["status"]


def test_a_closed_one_ends_and_makes_room(rest: Rest) -> None:
    names = [opens(rest, f"k{n}").json["metadata"]["name"] for n in range(8)]
    full = opens(rest, "more")
    assert (full.code, full.json["reason"]) == (429, "TooManyRequests")
    assert rest.post(f"{TERMINALS}/{names[0]}/close").code == 202
    rest.world.pass_time(1)
    assert rest.get(f"{TERMINALS}/{names[0]}").json["status"]["state"] == "Cancelled"
    assert opens(rest, "more").code == 202


@pytest.mark.parametrize(
    "wrong",
    [
        {"columns": 0},
        {"rows": 1001},
        {"columns": "80"},
        {"term": "a b"},
        {"term": ""},
        {"x": 1},
        {"command": ""},
    ],
)
def test_what_is_wrong_is_named_and_opens_nothing(rest: Rest, wrong: dict[str, Any]) -> None:
    refused = opens(rest, **wrong)
    assert (refused.code, refused.json["reason"]) == (422, "Invalid")
    assert rest.get(TERMINALS).json["items"] == []


def test_only_who_may_write_gets_a_ticket_and_nobody_reaches_another_project(rest: Rest) -> None:
    name = opens(rest).json["metadata"]["name"]
    rest.key = rest.new_key(permissions=("sandboxes:read",))
    assert rest.get(f"{TERMINALS}/{name}").code == 200
    for refused in (
        opens(rest, "k2"),
        rest.post(f"{TERMINALS}/{name}/attach"),
        rest.post(f"{TERMINALS}/{name}/close"),
    ):
        assert (refused.code, refused.json["reason"]) == (403, "Forbidden")
    rest.key = rest.new_key()
    other = rest.get(f"sandboxes/other/terminals/{name}")
    assert (other.code, other.json["reason"]) == (404, "NotFound")
    assert rest.get(f"{TERMINALS}/u-1").code == 404


# --- tickets, and what passes ---


def test_a_ticket_works_once_in_time_and_for_its_terminal(rest: Rest, relay: Relay) -> None:
    good = ticket(opens(rest))
    relay.admit(good, "p1")
    late = ticket(opens(rest))
    rest.world.clock.advance(61)
    for wrong in (good, late, "", "x" * 43, "é"):
        with pytest.raises(Refusal) as refused:
            relay.admit(wrong, "p2")
        assert refused.value.reason == "Unauthorized"
    assert rest.world.outside.connection("p2") is None


@pytest.mark.req("NOD-444")
def test_what_one_side_says_reaches_the_other_and_nobody_else(rest: Rest, relay: Relay, wires: Wires) -> None:
    opened = opens(rest)
    name = opened.json["metadata"]["name"]
    bell(rest, "mine", "d1")
    bell(rest, "other", "d2")
    relay.admit(ticket(opened), "p1")
    relay.hear("p1", says(client="c", n=1, after=0, evil="x"))
    assert wires.to("d1") == [{"terminal": name, "from": "p1", "frame": {"client": "c", "n": 1, "after": 0}}]
    shown = {
        "action": "terminal",
        "terminal": name,
        "to": "p1",
        "frame": {"at": 0, "data": "aGk=", "evil": 1},
    }
    relay.hear("d1", json.dumps(shown))
    assert wires.to("p1") == [{"at": 0, "data": "aGk="}]
    for speaker, message in (
        ("d2", shown),  # another sandbox's daemon
        ("d1", {**shown, "terminal": "t-1"}),
        ("d1", {**shown, "to": "d2"}),
        ("d1", {**shown, "to": "d1"}),
        ("d1", {**shown, "to": ["p1"]}),
        ("d1", {**shown, "frame": "x"}),
        ("p1", {**shown, "frame": [1]}),
        ("nobody", shown),
        ("p1", {"action": "ping"}),
    ):
        relay.hear(speaker, json.dumps(message))
    for nonsense in ("", "{", "[" * 50_000, "x" * 40_000, "null", json.dumps({**shown, "pad": "x" * 40_000})):
        relay.hear("d1", nonsense)
    assert len(wires.sent) == 2
    relay.hear("p1", json.dumps({**shown, "frame": {"client": "c"}}))  # a person cannot say where it goes
    assert wires.sent[2][0] == "d1"


def test_who_is_gone_is_told_to_the_daemon(rest: Rest, relay: Relay, wires: Wires) -> None:
    opened = opens(rest)
    name = opened.json["metadata"]["name"]
    bell(rest, "mine", "d1")
    relay.admit(ticket(opened), "p1")
    relay.left("p1")
    relay.left("p1")
    assert wires.to("d1") == [{"terminal": name, "from": "p1", "gone": True}]
    relay.admit(ticket(opens(rest)), "p2")
    wires.gone.add("p2")
    relay.hear("d1", json.dumps({"action": "terminal", "terminal": name, "to": "p2", "frame": {"at": 0}}))
    assert wires.to("d1")[1:] == [{"terminal": name, "from": "p2", "gone": True}]
    assert rest.world.outside.connection("p2") is None


@pytest.mark.req("NOD-399")
def test_typing_is_work_and_an_open_terminal_or_its_traffic_is_none(
    rest: Rest, relay: Relay, wires: Wires
) -> None:
    opened = opens(rest)
    bell(rest, "mine", "d1")
    relay.admit(ticket(opened), "p1")
    typed = base64.b64encode(b"ls\n").decode()
    for _ in range(3):
        rest.world.pass_time(300)
        relay.hear("p1", says(client="c", n=1, at=0, data=typed))
    rest.world.pass_time(300)
    assert rest.get("sandboxes/mine").json["status"]["phase"] == "Running"
    assert rest.get("sandboxes/other").json["status"]["phase"] == "Paused"
    for _ in range(3):
        relay.hear("p1", says(client="c", n=2, after=5, ask=True))
        relay.hear("d1", json.dumps({"action": "terminal", "to": "p1", "frame": {"data": typed}}))
        rest.world.pass_time(300)
    status = rest.get("sandboxes/mine").json["status"]
    assert (status["phase"], status["reason"]) == ("Paused", "Idle")
    relay.hear("p1", says(client="c", n=3, data=typed))  # goes nowhere, and wakes nothing
    rest.world.pass_time(60)
    assert rest.get("sandboxes/mine").json["status"]["phase"] == "Paused"
