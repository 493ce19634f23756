"""Messages to runs over REST: what is accepted, what a sender is told, what is refused (NOD-179 … NOD-184)."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from nodus_core.access.door import Place
from nodus_core.conversations.messages import Accepted
from nodus_core.inference.exchange import Usage, UserMessage
from nodus_core.kernel.errors import RetryableError
from nodus_core.kernel.states import InputState
from nodus_core.resources.message import Message
from nodus_core.testing.scripted_model import plays, says
from nodus_core.testing.scripted_sandbox import exited

from tests.unit.api.rest import Reply, Rest
from tests.unit.api.together import together

WEB = Place("acme", "web", "test")
LARGEST = 262_144


@pytest.fixture
def rest() -> Rest:
    made = Rest()
    made.agent()
    return made


def send(rest: Rest, text: Any = "And now?", key: Any = "k", run: str = "hello-run", **more: Any) -> Reply:
    return rest.post(f"agentruns/{run}/messages", {"payload": text, "messageKey": key}, **more)


def status(rest: Rest, run: str = "hello-run") -> dict[str, Any]:
    return rest.get(f"agentruns/{run}").json["status"]


def prompts(rest: Rest) -> list[str]:
    """The prompts that the last model call saw."""
    return [m.text for m in rest.world.models.requests[-1].messages if isinstance(m, UserMessage)]


# --- delivery ---


@pytest.mark.req("NOD-175", "NOD-176", "NOD-179", "NOD-183", "NOD-190", "NOD-069", "NOD-158", "NOD-165")
def test_a_kept_run_waits_and_answers_the_message_with_the_same_sandbox(rest: Rest) -> None:
    rest.agent(setup="printf ready > ready.txt")
    rest.run(keepAlive=True)
    rest.world.settle()
    waiting = status(rest)
    assert (waiting["phase"], waiting["reason"]) == ("Waiting", "MessageWait")
    assert waiting["sandbox"]["phase"] == "Running"
    calls = len(rest.world.models.requests) + len(rest.world.models.routings)
    rest.world.clock.advance(600)
    rest.world.settle()
    assert len(rest.world.models.requests) + len(rest.world.models.routings) == calls
    later = status(rest)
    assert float(later["cost"].pop("computeUSD")) > float(waiting["cost"].pop("computeUSD"))  # NOD-142
    assert later == waiting

    sent = send(rest, "Which number?")
    assert (sent.code, sent.json["kind"], sent.json["messageKey"], sent.json["turn"]) == (
        202,
        "Message",
        "k",
        2,
    )
    rest.world.settle()
    after = status(rest)
    assert [(turn["turn"], turn["prompt"], turn["phase"]) for turn in after["turns"]] == [
        (1, "Print the Python version.", "Succeeded"),
        (2, "Which number?", "Succeeded"),
    ]
    assert after["answer"]["turn"] == 2
    assert prompts(rest) == ["Print the Python version.", "Which number?"]
    assert after["sandbox"] == waiting["sandbox"]
    names = [step["name"] for step in rest.get("agentruns/hello-run/steps").json["items"]]
    assert names == [
        *("sandbox", "setup", "turn-1.route", "turn-1.model.1", "turn-2.route", "turn-2.model.1"),
    ]


@pytest.mark.req("NOD-176")
def test_from_the_answer_to_a_sender_on_a_run_does_not_show_that_it_waits(rest: Rest) -> None:
    rest.run(keepAlive=True)
    rest.world.settle()
    send(rest)
    assert (status(rest)["phase"], status(rest).get("reason")) == ("Running", None)


@pytest.mark.req("NOD-138", "NOD-165")
def test_follow_ups_share_one_cap() -> None:
    rest = Rest(plays([replace(says("done"), usage=Usage(100, 400))]))
    rest.agent(perRunMaxCostUSD="0.0114", model={"access": "OnDemand", "name": "m"})
    rest.run(keepAlive=True)
    for number in range(6):
        send(rest, "More.", f"k{number}")
    rest.world.settle()
    held = status(rest)
    assert (held["phase"], held["reason"]) == ("Waiting", "MaxCostReached")
    spent = [turn["costUSD"] for turn in held["turns"] if "costUSD" in turn]
    assert len(spent) > 1
    assert held["cost"]["totalUSD"] == f"{sum(map(float, spent)):.6f}".rstrip("0")
    assert len(held["turns"]) == len(spent) + 1 < 7
    calls = len(rest.world.models.requests)
    assert send(rest, "One more.", "late").code == 202  # NODQ-20: accepted, and no call is made for it
    rest.world.settle()
    assert len(rest.world.models.requests) == calls


@pytest.mark.req("NOD-181", "NOD-041", "NOD-595", "NODQ-19")
def test_messages_to_a_run_at_work_are_read_one_by_one_in_their_order() -> None:
    rest = Rest(plays([says("look", ("run_command", {"command": "x"})), says("done")]))
    rest.agent()
    rest.run()
    for number in range(3):
        assert send(rest, f"message {number}", f"k{number}").json["turn"] == number + 2
    rest.world.settle()
    after = status(rest)
    assert (after["phase"], "undelivered" in after) == ("Succeeded", False)
    assert [turn["prompt"] for turn in after["turns"]][1:] == ["message 0", "message 1", "message 2"]
    steps = [
        (step["name"].partition(".")[0], step["startedAt"], step["finishedAt"])
        for step in rest.get("agentruns/hello-run/steps").json["items"]
        if step["name"].startswith("turn-")
    ]
    assert [turn for turn, _, _ in steps] == sorted(turn for turn, _, _ in steps)
    for (turn, _, end), (later, start, _) in pairwise(steps):
        assert turn == later or end <= start


# --- the key ---


@pytest.mark.req("NOD-180", "NOD-191", "NODQ-17", "FLD-16")
def test_the_same_key_and_text_is_told_what_the_first_was_told(rest: Rest) -> None:
    rest.run(keepAlive=True)
    first = send(rest)
    assert (first.code, "idempotent-replayed" in first.headers) == (202, False)
    rest.world.settle()
    stored, calls = rest.commits, len(rest.world.models.requests)
    again = send(rest)
    assert (again.code, again.json) == (200, first.json)
    assert again.headers["idempotent-replayed"] == "true"
    rest.world.settle()
    rest.post("agentruns/hello-run/cancel")
    rest.world.settle()
    assert (send(rest).code, send(rest).json) == (200, first.json)
    assert len(rest.world.models.requests) == calls
    assert rest.commits > stored
    assert len(status(rest)["turns"]) == 2


@pytest.mark.req("NODQ-17")
def test_the_same_key_with_another_text_is_refused(rest: Rest) -> None:
    rest.run(keepAlive=True)
    send(rest)
    stored, texts = rest.commits, dict(rest.world.payloads.objects)
    refused = send(rest, "And now!")
    assert (refused.code, refused.json["reason"]) == (409, "MessageKeyConflict")
    assert "'k'" in refused.json["message"]
    assert (rest.commits, rest.world.payloads.objects) == (stored, texts)


@pytest.mark.req("NOD-180")
def test_a_key_counts_in_its_run_only(rest: Rest) -> None:
    for run in ("one", "two"):
        rest.run(run)
        assert send(rest, run, run=run).json["turn"] == 2
    rest.call("DELETE", "agentruns/one")
    rest.world.settle()
    rest.run("one")
    assert send(rest, "of another run of that name", run="one").code == 202


def sent_by(rest: Rest, text: str, key: str) -> Accepted:
    message = Message.model_validate({"payload": text, "messageKey": key})
    return rest.gate.service.messages.send(WEB, "hello-run", message)


@pytest.mark.req("NOD-180", "FLD-16", "INV-50")
def test_25_equal_messages_at_once_are_one(rest: Rest) -> None:
    rest.run()
    outcomes, refusals = together(25, lambda _: sent_by(rest, "And now?", "k"))
    assert refusals == []
    assert {outcome.turn for outcome in outcomes} == {2}
    assert sum(not outcome.replayed for outcome in outcomes) == 1
    rest.world.settle()
    assert len(status(rest)["turns"]) == 2


@pytest.mark.req("NOD-041", "FLD-12")
def test_25_messages_at_once_get_25_turns_in_the_order_of_acceptance(rest: Rest) -> None:
    rest.run()
    outcomes, refusals = together(25, lambda number: sent_by(rest, f"message {number}", f"k{number}"))
    assert refusals == []
    assert sorted(outcome.turn for outcome in outcomes) == list(range(2, 27))
    rest.world.settle()
    shown = {f"k{turn['prompt'].split()[1]}": turn["turn"] for turn in status(rest)["turns"][1:]}
    assert shown == {outcome.message_key: outcome.turn for outcome in outcomes}


# --- refusals ---


@pytest.mark.req("NOD-182", "NOD-191", "NOD-478")
@pytest.mark.parametrize("end", ["Succeeded", "Failed", "Cancelled"])
def test_a_finished_run_refuses_a_message(end: str) -> None:
    rest = Rest(plays([says("done")]), lambda kind, request: exited("", 1 if end == "Failed" else 0))
    rest.agent(setup="true")
    rest.run(keepAlive=end == "Cancelled")
    rest.world.settle()
    if end == "Cancelled":
        rest.post("agentruns/hello-run/cancel")
        rest.world.settle()
    assert status(rest)["phase"] == end
    stored, steps = rest.commits, rest.get("agentruns/hello-run/steps").json
    refused = send(rest, "x" * 5000)
    assert (refused.code, refused.json["reason"]) == (409, "AgentRunFinished")
    rest.world.settle()
    assert (rest.commits, rest.get("agentruns/hello-run/steps").json) == (stored, steps)


@pytest.mark.req("NOD-182", "FLD-12")
def test_a_run_that_is_being_cancelled_refuses_a_message(rest: Rest) -> None:
    rest.run(keepAlive=True)
    rest.post("agentruns/hello-run/cancel")
    refused = send(rest)
    assert (refused.code, refused.json["reason"]) == (409, "AgentRunFinished")
    assert "Cancelled" in refused.json["message"]


@pytest.mark.req("NOD-184", "NOD-589")
def test_a_message_has_at_most_256_kib_of_text(rest: Rest) -> None:
    rest.run(keepAlive=True)
    assert send(rest, "ä" * (LARGEST // 2), "largest").code == 202
    stored = rest.commits
    refused = send(rest, "ä" * (LARGEST // 2) + "x", "larger")
    assert (refused.code, refused.json["reason"], refused.fields) == (413, "PayloadTooLarge", ["payload"])
    assert str(LARGEST) in refused.json["message"]
    assert rest.commits == stored
    rest.world.settle()
    assert prompts(rest)[-1] == "ä" * (LARGEST // 2)


@pytest.mark.req("NODQ-18")
@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, ["payload", "messageKey"]),
        ({"payload": "x"}, ["messageKey"]),
        ({"payload": " \n", "messageKey": "k"}, ["payload"]),
        ({"payload": 7, "messageKey": "k"}, ["payload"]),
        ({"payload": "x", "messageKey": ""}, ["messageKey"]),
        ({"payload": "x", "messageKey": "k" * 129}, ["messageKey"]),
        ({"payload": "x", "messageKey": "ä" * 65}, ["messageKey"]),
        ({"payload": "x", "messageKey": "a\nb"}, ["messageKey"]),
        ({"payload": "x", "messageKey": 1.5}, ["messageKey"]),
        ({"payload": "x", "messageKey": "k", "wake": True}, ["wake"]),
        ({"payload": "a\x00b", "messageKey": "k"}, []),
    ],
)
def test_a_body_that_is_no_message_is_refused(rest: Rest, body: dict[str, Any], fields: list[str]) -> None:
    rest.run(keepAlive=True)
    stored = rest.commits
    refused = rest.post("agentruns/hello-run/messages", body)
    assert (refused.code, refused.json["reason"]) == (422, "Invalid")
    assert not fields or refused.fields == fields
    assert rest.commits == stored


def test_the_longest_key_is_taken(rest: Rest) -> None:
    rest.run()
    assert send(rest, key="ä" * 64).json["messageKey"] == "ä" * 64


@pytest.mark.req("NOD-479", "NODQ-96")
def test_who_may_only_read_sends_nothing(rest: Rest) -> None:
    rest.run()
    reader = rest.new_key(permissions=("agentruns:read",))
    refused = rest.post("agentruns/hello-run/messages", {"payload": "x", "messageKey": "other"}, key=reader)
    assert (refused.code, refused.json["reason"]) == (403, "Forbidden")
    assert send(rest, run="no-such-run").code == 404


# --- what could not be delivered ---


@pytest.mark.req("FLD-12", "NOD-185")
def test_a_cancel_lists_the_messages_that_were_not_read(rest: Rest) -> None:
    rest.run(keepAlive=True)
    for number in range(120):
        send(rest, "unread", f"k{number}")
    rest.post("agentruns/hello-run/cancel")
    rest.world.settle()
    after = status(rest)
    assert after["phase"] == "Cancelled"
    assert after["undelivered"] == [{"messageKey": f"k{n}", "reason": "Cancelled"} for n in range(20)]
    assert after["undeliveredCount"] == 120
    uid = rest.get("agentruns/hello-run").json["metadata"]["uid"]
    entries = rest.world.outside.inputs_of(uid, after=0, limit=200)
    assert {entry.state for entry in entries} == {InputState.CANCELED}
    assert len(entries) == 121
    assert max(len(commit.operations) for commit in rest.store.commits) <= 100


@pytest.mark.req("NODQ-41", "NODQ-94")
def test_a_deleted_run_leaves_nothing_of_its_messages(rest: Rest) -> None:
    rest.run(keepAlive=True)
    send(rest, "x" * 10_000)
    rest.call("DELETE", "agentruns/hello-run")
    rest.world.settle()
    left = [key for key in rest.store.rows() if key.sk.startswith(("msg#", "in#", "turn#"))]
    assert (left, rest.world.payloads.objects) == ([], {})


@pytest.mark.req("NOD-189", "FLD-12")
def test_a_lost_kick_loses_no_message(rest: Rest) -> None:
    rest.run(keepAlive=True)
    rest.world.settle()

    class Down:
        def start(self, line: str, generation: int) -> None:
            raise RetryableError("Step Functions does not answer")

    kicks = rest.gate.service.messages.kicks
    object.__setattr__(kicks, "executions", Down())
    assert send(rest).code == 202
    object.__setattr__(kicks, "executions", rest.world.executions)
    rest.world.settle()  # the sweeper alone finds it
    assert status(rest)["answer"]["turn"] == 2
