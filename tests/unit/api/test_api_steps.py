"""Steps and answers over REST, from journals that a worker wrote and from rows made by hand."""

import json
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from nodus_core.conversations.reading import LARGEST_ANSWER
from nodus_core.conversations.stepping import step
from nodus_core.journal import keys
from nodus_core.journal.fence import Fence
from nodus_core.journal.payloads import Scope
from nodus_core.journal.steps import Changes
from nodus_core.journal.store import Put
from nodus_core.journal.writer import stored
from nodus_core.kernel.objects import Hold, Run, Turn
from nodus_core.kernel.states import Guarantee, RunState, Statement, TaskKind, TaskState, TurnState
from nodus_core.kernel.tasks import Resolution, Result, Task, Usage
from nodus_core.kernel.text import Inline
from nodus_core.kernel.times import stamp
from nodus_core.testing.scripted_model import plays, says
from nodus_core.testing.scripted_sandbox import exited

from tests.unit.api.rest import Rest


@pytest.fixture
def rest() -> Rest:
    made = Rest(
        plays([says("Look.", ("run_command", {"command": "date"})), says("It is late.")]), clock_command
    )
    made.agent(setup="true")
    return made


def clock_command(kind: str, request: dict[str, Any]) -> dict[str, Any]:
    return exited("Tue\x1b[31m\n", 3) if "date" in request["command"] else exited()


@pytest.mark.req("NOD-071", "NOD-072", "NODQ-86", "NOD-063", "NOD-076", "NEX-10")
def test_steps_tell_in_order_what_the_run_did(rest: Rest) -> None:
    rest.agent()
    rest.run("r")
    rest.world.settle()
    reply = rest.get("agentruns/r/steps")
    assert (reply.code, reply.json["kind"], reply.json["metadata"]) == (200, "StepList", {})
    items = reply.json["items"]
    names = ["sandbox", "turn-1.route", "turn-1.model.1", "turn-1.tool.run_command.1", "turn-1.model.2"]
    assert [item["name"] for item in items] == names
    assert [item["kind"] for item in items] == ["sandbox", "route", "model", "tool", "model"]
    assert [item["index"] for item in items] == [1, 2, 3, 4, 5]
    assert {item["state"] for item in items} == {"Completed"}
    assert items[2]["preview"] == "Look."  # what the model said beside its call
    command = items[3]
    assert command["input"]
    assert (command["exitCode"], command["preview"]) == (3, "Tue\\x1b[31m\n[exit code 3]")
    assert command["guarantee"] == "AtMostOnce"
    assert (command["rawBytes"], command["droppedBytes"]) == (9, 0)
    model = items[4]
    assert (model["preview"], model["usage"]) == ("It is late.", {"inputTokens": 100, "outputTokens": 10})
    assert model["costUSD"] == "0.00012"
    assert rest.get("agentruns/r/steps").text == reply.text


@pytest.mark.req("NODQ-71", "FLD-07")
@pytest.mark.parametrize("limit", ["1", "2", "3", "5", "500"])
def test_pages_of_steps_join_without_gap_or_repeat(rest: Rest, limit: str) -> None:
    rest.run("r")
    rest.world.settle()
    whole = rest.get("agentruns/r/steps").json["items"]
    assert len(whole) == 6
    query, seen = {"limit": limit}, []
    for _ in range(len(whole) + 1):
        page = rest.get("agentruns/r/steps", query=query).json
        seen += page["items"]
        if "continue" not in page["metadata"]:
            break
        query["continue"] = page["metadata"]["continue"]
    assert seen == whole


def test_a_token_that_is_none_is_refused(rest: Rest) -> None:
    rest.run("r")
    lists = rest.get("agents", query={"limit": "1"})
    for text in ("x", "W10", "WzEsMF0", "WzAsMCwwLG51bGxd", "bnVsbA", lists.text[:20]):
        assert rest.get("agentruns/r/steps", query={"continue": text}).code == 400, text
    assert rest.get("agentruns/nobody/steps").code == 404
    assert rest.get("agentruns/r/steps").json["items"] == []


class Opened:
    """A run with one open turn, whose steps a test writes through the journal's own commits."""

    def __init__(self, rest: Rest) -> None:
        self.rest = rest
        self.journal = rest.gate.service.reading.shelf.journal
        self.now = rest.world.clock.now()
        self.uid: str = rest.run("r").json["metadata"]["uid"]
        head = self.journal.conversation(self.uid)
        assert head is not None
        self.fence = Fence(self.uid, 1, "me")
        head, _ = self.journal.lines.take(head, None, self.fence, self.now)
        turn = Turn(self.uid, 1, 1, f"{self.uid}-1", TurnState.OPEN, "Do it.", self.now)
        self.run = Run(
            f"{self.uid}-1",
            self.uid,
            1,
            RunState.RUNNING,
            {"main": Hold(1, "me")},
            Decimal(1),
            self.now,
        )
        self.journal.turns.open_turn(self.fence, head, turn, self.run, ())
        self.turn = turn

    def task(self, key: str, **fields: Any) -> Task:
        tool = "run_command" if "t" in key else None
        values: dict[str, Any] = {
            "kind": TaskKind.TOOL if tool else TaskKind.MODEL,
            "state": TaskState.RUNNING,
            "guarantee": Guarantee.AT_MOST_ONCE,
            "number": 1,
            "started_at": self.now,
            "tool": tool,
            **fields,
        }
        return Task(self.run.uid, key, **values)

    def record(self, settled: tuple[Task, ...] = (), begun: tuple[Task, ...] = ()) -> None:
        self.run = self.journal.steps.record(self.fence, self.run, Changes(settled=settled, begun=begun))


@pytest.mark.req("NODQ-86", "NOD-090")
def test_open_steps_come_last_in_the_order_of_their_start(rest: Rest) -> None:
    made = Opened(rest)
    one = made.task("r1", reserved=Decimal("0.1"))
    late = made.task(
        "r1t1", number=2, started_at=made.now + timedelta(seconds=2), input=Inline("sleep 9\x00")
    )
    early = made.task("r1t0", started_at=made.now + timedelta(seconds=1))
    made.record(begun=(one,))
    done = made.task(
        "r1",
        state=TaskState.COMPLETED,
        reserved=Decimal("0.1"),
        cost=Decimal("0.0123"),
        usage=Usage(5, 7),
        model="scripted/haiku",
        resent=1,
        attempt=1,
        finished_at=made.now,
    )
    made.record((done,), (late, early))
    items = rest.get("agentruns/r/steps").json["items"]
    assert [item["name"] for item in items] == [
        "turn-1.model.1",
        "turn-1.tool.run_command.1",
        "turn-1.tool.run_command.2",
    ]
    assert [item["state"] for item in items] == ["Completed", "Running", "Running"]
    assert items[0] == {
        "index": 1,
        "name": "turn-1.model.1",
        "kind": "model",
        "state": "Completed",
        "guarantee": "AtMostOnce",
        "attempt": 1,
        "startedAt": "2030-01-01T00:00:00.000Z",
        "finishedAt": "2030-01-01T00:00:00.000Z",
        "costUSD": "0.0123",
        "usage": {"inputTokens": 5, "outputTokens": 7},
        "model": "scripted/haiku",
        "resent": 1,
    }
    assert items[2]["input"] == "sleep 9\\x00"
    assert rest.get("agentruns/r").json["status"]["cost"]["totalUSD"] == "0.0123"
    assert rest.get("agentruns").json["items"][0]["status"]["cost"]["totalUSD"] == "0.0123"


def test_an_open_step_that_settles_between_two_pages_is_not_missed(rest: Rest) -> None:
    made = Opened(rest)
    calls = tuple(
        made.task(f"r1t{n}", number=n + 1, started_at=made.now + timedelta(seconds=n)) for n in range(3)
    )
    made.record(begun=calls)
    first = rest.get("agentruns/r/steps", query={"limit": "1"}).json
    settled = made.task("r1t1", number=2, state=TaskState.FAILED, finished_at=made.now)
    made.record(settled=(settled,))
    query = {"continue": first["metadata"]["continue"]}
    rest_of_it = rest.get("agentruns/r/steps", query=query).json["items"]
    seen = [(item["name"][-1], item["state"]) for item in [*first["items"], *rest_of_it]]
    assert seen == [("1", "Running"), ("2", "Failed"), ("3", "Running")]


@pytest.mark.parametrize(
    ("state", "word"),
    [
        (TaskState.COMPLETED, "Completed"),
        (TaskState.FAILED, "Failed"),
        (TaskState.TIMED_OUT, "Failed"),
        (TaskState.UNCERTAIN, "Uncertain"),
        (TaskState.CANCELED, "Cancelled"),
        (TaskState.RUNNING, "Running"),
        (TaskState.PARKED, "Running"),
    ],
)
def test_the_words_of_states(rest: Rest, state: TaskState, word: str) -> None:
    made = Opened(rest)
    assert step(made.run, made.task("r1t0", state=state), 1)["state"] == word


@pytest.mark.req("NOD-090")
def test_a_held_step_shows_as_uncertain_until_somebody_has_spoken(rest: Rest) -> None:
    made = Opened(rest)
    held = made.task("r1t0", state=TaskState.UNCERTAIN)
    assert step(made.run, held, 1)["state"] == "Uncertain"
    said = Resolution(1, Statement.HAPPENED, "alice", made.now, "SandboxLost")
    shown = step(made.run, replace(held, resolutions=(said,)), 1)
    assert shown["state"] == "Running"
    assert shown["resolution"] == {
        "outcome": "Happened",
        "by": "alice",
        "at": stamp(made.now),
        "attempt": 1,
    }


@pytest.mark.req("FLD-08", "FLD-06")
def test_previews_are_short_whole_and_harmless(rest: Rest) -> None:
    made = Opened(rest)
    result = Result(Inline("\x1b]0;x\x07é\u202e" + "é" * 3000), error="Refused", exit_code=0)
    shown = step(made.run, made.task("r1t0", state=TaskState.FAILED, finished_at=made.now, result=result), 1)
    assert shown["preview"].startswith("\\x1b]0;x\\x07é\\u202eé")
    assert len(shown["preview"].encode()) <= 4096
    assert (shown["error"], shown["exitCode"]) == ("Refused", 0)
    json.dumps(shown).encode()


def finish(made: Opened, answer: str | None, state: TurnState = TurnState.COMPLETED) -> None:
    """The turn as a worker finishes it, by hand: only its row counts for the answer."""
    payloads = made.rest.world.payloads
    text = None if answer is None else payloads.put(Scope("acme", made.uid), answer)
    values = {**vars(made.turn), "state": state, "answer": text, "finished_at": made.now}
    row = stored(keys.turn_key(made.uid, 1), Turn(**values))
    made.journal.writer.commit("finish-by-hand", Put(row))


@pytest.mark.req("NOD-067", "NOD-065")
def test_an_answer_is_whole_or_not_there(rest: Rest) -> None:
    made = Opened(rest)
    early = rest.get("agentruns/r/answer")
    assert (early.code, early.json["reason"]) == (409, "AnswerNotReady")
    finish(made, None, TurnState.FAILED)
    assert rest.get("agentruns/r/answer").json["reason"] == "AnswerNotReady"
    text = "€" * 100_000 + "\n\x1b[31m"
    finish(made, text)
    answer = rest.get("agentruns/r/answer")
    assert (answer.code, answer.text) == (200, text)
    assert rest.get("agentruns/nobody/answer").code == 404


@pytest.mark.req("FLD-06")
@pytest.mark.parametrize("text", ["x" * (LARGEST_ANSWER + 1), "😀" * 900_000, "\x01" * 1_500_000])
def test_an_answer_that_no_reply_can_hold_is_a_redirect(rest: Rest, text: str) -> None:
    finish(Opened(rest), text)
    answer = rest.get("agentruns/r/answer")
    assert (answer.code, answer.text) == (307, "")
    assert answer.headers["location"].startswith("https://payloads.invalid/acme/")


def test_an_answer_at_the_limit_is_a_reply(rest: Rest) -> None:
    text = "x" * LARGEST_ANSWER
    finish(Opened(rest), text)
    assert rest.get("agentruns/r/answer").text == text


@pytest.mark.req("NOD-063", "NOD-128")
def test_a_call_whose_usage_is_not_known_shows_the_reserve_that_was_booked() -> None:
    rest = Rest(plays([replace(says("done"), usage=None)]))
    rest.agent()
    rest.run("r")
    rest.world.settle()
    steps = {step["name"]: step for step in rest.get("agentruns/r/steps").json["items"]}
    call, route = steps["turn-1.model.1"], steps["turn-1.route"]
    assert call["costBasis"] == "Reserve"
    assert "costBasis" not in route
    total = Decimal(rest.get("agentruns/r").json["status"]["cost"]["totalUSD"])
    assert Decimal(call["costUSD"]) + Decimal(route["costUSD"]) == total > 0
