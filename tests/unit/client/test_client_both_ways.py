"""What those who block and those who await have alike, since it is written once: over a wire that plays answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from typing import Any

import nodus
import pytest
from nodus import errors
from nodus._transport import MOST_ANSWER_BYTES, TRIES
from nodus._wire import Answer, BlockingWire, ConcurrentWire, Request

from tests.unit.client.fake_runs import Outcome
from tests.unit.client.fake_server import FakeServer, Fault
from tests.unit.client.fake_wire import Played, Player, answer, query_of, refusal

Play = Callable[[Iterable[Played]], Player]
Act = Callable[[Any], Any]
LOST = errors.OutcomeUnknownError("lost")
AWAY = errors.ServerUnreachableError("away")
AGENT: dict[str, Any] = {"metadata": {"name": "a"}, "spec": {}}


@pytest.fixture(params=["blocking", "awaiting"])
def play(request: pytest.FixtureRequest) -> Play:
    """A client of each kind."""
    return lambda answers: Player(awaits=request.param == "awaiting", answers=answers)


def thing(**status: Any) -> Answer:
    return answer({"kind": "Agent", "metadata": {"name": "a", "uid": "u"}, "status": status})


def keys(player: Player) -> set[str | None]:
    return {request.headers.get("Idempotency-Key") for request in player.wire.seen}


CALLS: dict[str, tuple[str, str, Act]] = {
    "get": ("GET", "/agents/a", lambda client: client.agents.get("a")),
    "create": ("POST", "/agents", lambda client: client.agents.create("a", {})),
    "update": ("PUT", "/agents/a", lambda client: client.agents.update(AGENT)),
    "apply": ("PATCH", "/agents/a", lambda client: client.agents.apply(AGENT)),
    "cancel": ("POST", "/agentruns/a/cancel", lambda client: client.agentruns.cancel("a")),
    "team": ("GET", "/agentruns/a/team", lambda client: client.agentruns.team("a")),
    "patch": ("PATCH", "/agents/a", lambda client: client.agents.patch("a", {})),
    "delete": ("DELETE", "/agents/a", lambda client: client.agents.delete("a")),
    "apply a run": ("PATCH", "/agentruns/a", lambda client: client.agentruns.apply(AGENT)),
    "apply a group": ("PATCH", "/agentgroups/a", lambda client: client.agentgroups.apply(AGENT)),
    "update at a version": (
        "PUT",
        "/agents/a",
        lambda client: client.agents.update({"metadata": {"name": "a", "resourceVersion": "7"}}),
    ),
}
REPEATABLE = ("get", "team", "create", "update", "apply", "cancel")


@pytest.mark.parametrize("name", CALLS)
def test_where_a_call_goes(play: Play, name: str) -> None:
    method, path, act = CALLS[name]
    player = play([thing()])
    player.result(act)
    (request,) = player.wire.seen
    assert (request.method, request.url) == (
        method,
        f"http://nodus.test/apis/nodus.dev/v1/namespaces/default{path}",
    )
    assert request.headers["Authorization"] == "Bearer token-of-the-test"
    assert ("Idempotency-Key" in request.headers) == (method != "GET")


@pytest.mark.req("FLD-16")
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("failed", [LOST, answer(b"bad gateway", 502), refusal(500, "InternalError")])
def test_a_lost_answer_is_asked_for_again_where_that_does_no_harm(
    play: Play, name: str, failed: Played
) -> None:
    player = play([failed, failed, thing()])
    if name in REPEATABLE:
        player.result(CALLS[name][2])
        assert (len(player.wire.seen), len(keys(player)), len(player.wire.pauses)) == (3, 1, 2)
        return
    with pytest.raises((errors.OutcomeUnknownError, errors.ServerError)):
        player.result(CALLS[name][2])
    assert len(player.wire.seen) == 1


def test_a_create_leaves_the_name_to_the_server(play: Play) -> None:
    player = play([LOST, thing()])
    player.result(lambda client: client.agents.create(None, {}, generate_name="more-", labels={"a": "b"}))
    sent = [json.loads(request.content or b"") for request in player.wire.seen]
    assert sent[0]["metadata"] == {"generateName": "more-", "labels": {"a": "b"}}
    assert (len(sent), len(keys(player))) == (2, 1)


@pytest.mark.parametrize(("name", "generate_name"), [(None, None), ("a", "a-"), ("", None), (None, "")])
def test_a_create_has_a_name_or_the_beginning_of_one(
    play: Play, name: str | None, generate_name: str | None
) -> None:
    player = play([thing()])
    with pytest.raises(errors.NodusError, match="name or generate_name") as caught:
        player.result(lambda client: client.agents.create(name, {}, generate_name=generate_name))
    assert (caught.value.reason, player.wire.seen) == ("Invalid", [])


@pytest.mark.parametrize(
    ("given", "preconditions"),
    [
        ({}, None),
        ({"uid": "u"}, {"uid": "u"}),
        ({"resource_version": "7"}, {"resourceVersion": "7"}),
        ({"uid": "u", "resource_version": "7"}, {"uid": "u", "resourceVersion": "7"}),
    ],
)
def test_a_delete_names_the_object_that_is_meant(
    play: Play, given: dict[str, str], preconditions: dict[str, str] | None
) -> None:
    player = play([thing(), refusal(409, "Conflict")])
    player.result(lambda client: client.agents.delete("a", **given))
    (request,) = player.wire.seen
    assert request.method == "DELETE"
    if preconditions is None:
        assert request.content is None
    else:
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions}
        assert json.loads(request.content or b"") == options
        assert request.headers["Content-Type"] == "application/json"
    with pytest.raises(errors.ConflictError):
        player.result(lambda client: client.agents.delete("a", **given))


@pytest.mark.parametrize("failed", [LOST, answer(b"bad gateway", 502)])
@pytest.mark.parametrize(
    "act",
    [
        lambda client: client.apikeys.create("ci", {"role": "viewer"}),
        lambda client: client.apikeys.apply({"metadata": {"name": "ci"}, "spec": {"role": "viewer"}}),
    ],
)
def test_a_key_is_not_made_again_unasked_since_its_token_would_be_missing(
    play: Play, act: Act, failed: Played
) -> None:
    player = play([failed, thing()])
    with pytest.raises((errors.OutcomeUnknownError, errors.ServerError)) as caught:
        player.result(act)
    assert len(player.wire.seen) == 1
    if failed is LOST:
        assert "apikey/ci" in caught.value.message
        assert str(caught.value) == caught.value.message


@pytest.mark.parametrize("name", CALLS)
def test_what_certainly_did_nothing_is_sent_again(play: Play, name: str) -> None:
    player = play([AWAY, refusal(429, "TooManyRequests", retry_after="7"), thing()])
    player.result(CALLS[name][2])
    assert len(keys(player)) == 1
    assert player.wire.pauses[1] > 7


def test_tries_and_waits_are_bounded(play: Play) -> None:
    player = play([AWAY] * 9)
    with pytest.raises(errors.ServerUnreachableError):
        player.result(CALLS["get"][2])
    assert len(player.wire.seen) == TRIES
    patient = play([refusal(429, "TooManyRequests", retry_after="3600")])
    with pytest.raises(errors.TooManyRequestsError) as caught:
        patient.result(CALLS["get"][2])
    assert (caught.value.retry_after, patient.wire.pauses) == (3600, [])


@pytest.mark.parametrize("header", ["inf", "nan", "-5", "soon", "9" * 400])
def test_a_retry_after_without_a_meaning_is_no_reason_to_wait_for_ever(play: Play, header: str) -> None:
    player = play([refusal(429, "TooManyRequests", retry_after=header), thing()])
    player.result(CALLS["get"][2])
    assert player.wire.now < 1


@pytest.mark.parametrize("header", ["x-request-id", "apigw-requestid"])
def test_a_refusal_names_the_request_for_its_operator(play: Play, header: str) -> None:
    refused = refusal(404, "NotFound")
    player = play([Answer(404, {header: "r-1"}, refused.content)])
    with pytest.raises(errors.NotFoundError) as caught:
        player.result(CALLS["get"][2])
    assert caught.value.request_id == "r-1"


HOSTILE = [
    b"",
    b"<html>sign in</html>",
    b"[]",
    b"null",
    b"7",
    b'{"a":',
    b"\xff\xfe",
    b"[" * 100_000,
    b'{"n":' + b"9" * 10_000 + b"}",
]


@pytest.mark.parametrize("content", HOSTILE)
def test_an_answer_that_is_no_object_is_said(play: Play, content: bytes) -> None:
    with pytest.raises(errors.UnexpectedAnswerError, match="address"):
        play([answer(content)]).result(CALLS["get"][2])


@pytest.mark.parametrize("content", HOSTILE)
def test_a_refusal_without_a_status_is_that_of_its_code(play: Play, content: bytes) -> None:
    with pytest.raises(errors.ForbiddenError):
        play([answer(content, 403)]).result(CALLS["get"][2])


@pytest.mark.parametrize(
    "page", [{}, {"items": None}, {"items": {"a": 1}}, {"items": [1]}, {"items": [{}], "metadata": 7}]
)
def test_a_list_of_the_wrong_shape_is_said(play: Play, page: dict[str, Any]) -> None:
    player = play([answer(page)])
    if page.get("items") == [{}]:
        assert len(player.first(None, lambda client: client.agents.list())) == 1
        return
    with pytest.raises(errors.UnexpectedAnswerError, match="list"):
        player.first(None, lambda client: client.agents.list())


def test_a_list_without_an_end_is_noticed(play: Play) -> None:
    page = answer({"items": [{}], "metadata": {"continue": "again"}})
    player = play([page] * 99)
    with pytest.raises(errors.UnexpectedAnswerError, match="same page"):
        player.first(None, lambda client: client.agents.list())
    assert len(player.wire.seen) == 2


@pytest.mark.req("NODQ-71")
def test_lists_are_read_as_they_are_used(play: Play) -> None:
    pages = [
        answer({"items": [{"n": 1}, {"n": 2}], "metadata": {"continue": "two"}}),
        answer({"items": [{"n": 3}], "metadata": {}}),
    ]
    player = play(pages)
    assert [one.n for one in player.first(2, lambda client: client.agents.list())] == [1, 2]
    assert len(player.wire.seen) == 1
    player = play(pages)
    everything = player.first(None, lambda client: client.agents.list(label_selector="team=web"))
    assert [one.n for one in everything] == [1, 2, 3]
    assert [query_of(request).get("continue") for request in player.wire.seen] == [None, "two"]
    assert query_of(player.wire.seen[1])["labelSelector"] == "team=web"


def test_kinds_of_the_organization_are_not_below_a_project(play: Play) -> None:
    player = play([thing()])
    player.result(lambda client: client.projects.get("web"))
    assert player.wire.seen[0].url == "http://nodus.test/apis/nodus.dev/v1/projects/web"


def test_a_dry_run_says_so(play: Play) -> None:
    player = play([thing()] * 5)
    for act in (
        lambda client: client.agents.create("a", {}, dry_run=True),
        lambda client: client.agents.update(AGENT, dry_run=True),
        lambda client: client.agents.apply(AGENT, dry_run=True),
        lambda client: client.agents.patch("a", {}, dry_run=True),
        lambda client: client.agents.delete("a", dry_run=True),
    ):
        player.result(act)
    assert [query_of(request) for request in player.wire.seen] == [{"dryRun": "All"}] * 5


@pytest.mark.parametrize("manifest", [{}, {"metadata": None}, {"metadata": {}}, {"metadata": {"name": 7}}])
def test_a_manifest_without_a_name_is_refused_before_it_is_sent(play: Play, manifest: dict[str, Any]) -> None:
    player = play([])
    for act in (lambda c: c.agents.apply(manifest), lambda c: c.agents.update(manifest)):
        with pytest.raises(errors.NodusError, match="metadata"):
            player.result(act)
    assert player.wire.seen == []


def test_what_was_read_can_be_changed_and_written_back(play: Play) -> None:
    body = {"metadata": {"name": "a", "resourceVersion": "7"}, "spec": {"system": "x"}}
    player = play([answer(body), answer(body), refusal(409, "Conflict")])
    read = player.result(CALLS["get"][2])
    player.result(lambda client: client.agents.update(read))
    assert b'"resourceVersion": "7"' in (player.wire.seen[1].content or b"")
    with pytest.raises(errors.ConflictError):
        player.result(lambda client: client.agents.update(read))


@pytest.mark.parametrize(
    ("condition", "status"),
    [
        ("phase=Succeeded", {"phase": "Succeeded"}),
        ("condition=Ready", {"conditions": [{"type": "Ready", "status": "True"}]}),
        ("condition=ready=false", {"conditions": [7, {"type": "Ready", "status": "False"}]}),
        ("jsonpath={.status.cost.totalUSD}=0.5", {"cost": {"totalUSD": "0.5"}}),
        ("jsonpath=.status.n=3", {"n": 3}),
        (lambda seen: seen.status.get("n") == 3, {"n": 3}),
    ],
)
def test_a_wait_ends_when_the_object_is_as_wanted(play: Play, condition: Any, status: dict[str, Any]) -> None:
    player = play([thing(), thing(phase="Running", conditions=None), LOST, thing(**status)])
    assert player.result(lambda client: client.agents.wait_for("a", condition)).status == status
    assert len(player.wire.seen) == 4


@pytest.mark.req("NODQ-73")
def test_a_wait_for_a_phase_ends_with_another_end(play: Play) -> None:
    player = play([thing(phase="Running"), thing(phase="Failed")])
    with pytest.raises(errors.ConditionMissedError, match="agentrun/a has ended Failed") as caught:
        player.result(lambda client: client.agentruns.wait_for("a", "phase=Succeeded"))
    assert caught.value.object.status.phase == "Failed"


def test_a_wait_has_an_end(play: Play) -> None:
    player = play([thing(phase="Running")] * 99)
    with pytest.raises(errors.WaitTimeoutError, match="agent/a is Running, and not phase=Done, after 9 s"):
        player.result(lambda client: client.agents.wait_for("a", "phase=Done", timeout=9))
    assert player.wire.now == pytest.approx(9)


@pytest.mark.parametrize(
    "condition", ["", "Ready", "phase=", "jsonpath={.a}", "jsonpath=.a", "jsonpath={..}=1"]
)
def test_a_condition_that_is_none_is_refused(play: Play, condition: str) -> None:
    player = play([])
    with pytest.raises(errors.NodusError):
        player.result(lambda client: client.agents.wait_for("a", condition))
    assert player.wire.seen == []


def test_a_wait_until_it_is_gone(play: Play) -> None:
    player = play([thing(), thing(), refusal(404, "NotFound")])
    assert player.result(lambda client: client.agents.wait_gone("a")) is None
    player = play([thing()] * 99)
    with pytest.raises(errors.WaitTimeoutError, match="still there"):
        player.result(lambda client: client.agents.wait_gone("a", timeout=5))


@pytest.mark.req("NOD-360", "NOD-363")
def test_a_batch_is_one_call_that_may_be_repeated(play: Play) -> None:
    runs = [{"metadata": {"name": f"r{n}"}, "spec": {"agent": "a", "input": "x"}} for n in range(100)]
    made = answer({"kind": "AgentRunList", "items": runs}, 201)
    player = play([LOST, made])
    assert len(player.result(lambda client: client.agentruns.create_many(runs, key="batch-1"))) == 100
    assert keys(player) == {"batch-1"}
    with pytest.raises(ValueError, match="101 runs: at most 100"):
        player.result(lambda client: client.agentruns.create_many([*runs, runs[0]]))
    assert len(player.wire.seen) == 2


def test_a_record_that_is_the_wrong_thing_breaks_no_handle(play: Play) -> None:
    """``status`` is no object, ``sandbox`` neither: as if it was not there."""
    player = play([answer({"status": "x"}), answer({"status": {"phase": "Cancelled", "sandbox": 7}})])

    def cancel(client: Any) -> Any:
        run = nodus.AgentRun if isinstance(client, nodus.Client) else nodus.AsyncAgentRun
        return run("r", client=client).cancel()

    assert player.result(cancel).phase == "Cancelled"


@pytest.mark.parametrize("awaits", [False, True])
def test_an_answer_that_is_too_large_is_not_held(server: FakeServer, awaits: bool) -> None:
    server.faults.append(Fault("GET", status=200, body=b"x" * (MOST_ANSWER_BYTES + 1)))
    request = Request("GET", server.address + "/healthz", {}, None, 25, MOST_ANSWER_BYTES)

    async def awaited() -> None:
        wire = ConcurrentWire()
        try:
            await wire.exchange(request)
        finally:
            await wire.close()

    with pytest.raises(errors.UnexpectedAnswerError, match="more than"):
        asyncio.run(awaited()) if awaits else BlockingWire().exchange(request)


@pytest.mark.req("NOD-503", "NOD-511", "NOD-512", "NOD-513")
def test_agents_and_runs_awaited(server: FakeServer) -> None:
    server.outcomes["Say hi"] = Outcome(answer="hi")

    async def main() -> None:
        async with nodus.AsyncClient() as client:
            agent = nodus.AsyncClaudeAgent("helper", client=client, system="You are careful.")
            assert await agent.remote("Say hi") == "hi"
            run = await agent.submit("Summarize the logs", keep_alive=True, name="r")
            assert (await run.status).phase in {"Queued", "Running"}
            await run.send("k", "Now the staging logs")
            again = nodus.AsyncAgentRun.from_name("r", client=client)
            assert (await again.wait(timeout=50)).phase == "Succeeded"
            assert [step.name for step in await again.steps()][:2] == ["sandbox", "setup"]
            names = [one.metadata.name async for one in client.agentruns.list()]
            assert len(names) == 2
            model = nodus.AsyncModelAgent("m", client=client, model="openai/gpt-oss-20b")
            await model.submit("x")

    asyncio.run(main())
    assert server.object("agents", "helper")["spec"]["system"] == "You are careful."
    assert server.object("agents", "m")["spec"]["model"] == {
        "access": "OnDemand",
        "name": "openai/gpt-oss-20b",
    }


def test_tasks_that_start_together_describe_their_agent_once(server: FakeServer) -> None:
    async def main() -> list[nodus.AsyncAgentRun]:
        async with nodus.AsyncClient() as client:
            agent = nodus.AsyncClaudeAgent("helper", client=client)
            return await asyncio.gather(*(agent.submit(f"task {n}") for n in range(8)))

    assert len({run.name for run in asyncio.run(main())}) == 8
    assert len(server.asked("PATCH .*/agents/helper")) == 1
    assert len(server.asked("POST .*/agentruns")) == 8


def test_a_task_that_is_cancelled_waits_no_longer_and_leaves_the_client_usable(server: FakeServer) -> None:
    server.outcomes["x"] = Outcome("Waiting", None, "BudgetBlocked")

    async def main() -> str:
        async with nodus.AsyncClient() as client:
            run = await nodus.AsyncClaudeAgent("a", client=client).submit("x")
            waiting = asyncio.create_task(run.wait())
            while len(server.asked("GET .*/agentruns/")) < 3:
                await asyncio.sleep(0.001)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            return str((await client.agentruns.get(run.name)).metadata.name)

    assert asyncio.run(main())


def test_two_loops_one_after_the_other(server: FakeServer) -> None:
    """Each loop has its own client; nothing of the first is left in the second."""

    async def main() -> int:
        async with nodus.AsyncClient() as client:
            return len([one async for one in client.agents.list()])

    assert (asyncio.run(main()), asyncio.run(main())) == (0, 0)


def test_a_client_that_was_closed_opens_again(server: FakeServer) -> None:
    async def main() -> None:
        client = nodus.AsyncClient()
        for _ in range(2):
            await client.agents.apply(AGENT)
            await client.close()

    asyncio.run(main())
    assert len(server.asked("PATCH")) == 2
