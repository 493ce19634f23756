"""MCP from the wire: what the official client is answered, through the events that API Gateway sends."""

import asyncio
import base64
import json
import threading
from typing import Any

import httpx2
import pytest
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client
from nodus_core.access.grant import Rate
from nodus_core.conversations.team import summary
from nodus_core.testing.scripted_model import plays, says

from functions.api.handler import mcp
from functions.api.mcp.tools import BY_TOOL_NAME
from tests.unit.api.rest import Context, Rest

SERVER = "https://nodus.example/mcp"


class Gateway(httpx2.AsyncBaseTransport):
    """API Gateway between a client and the function."""

    def __init__(self, rest: Rest) -> None:
        self._rest, self.requests = rest, 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.requests += 1
        event = {
            "version": "2.0",
            "rawPath": request.url.path,
            "rawQueryString": "",
            "headers": dict(request.headers),
            "requestContext": {
                "http": {"method": request.method, "path": request.url.path},
                "stage": "$default",
            },
            "body": base64.b64encode(await request.aread()).decode(),
            "isBase64Encoded": True,
        }
        # The function has a process of its own, with no event loop in it.
        answer = await asyncio.to_thread(mcp.answer, self._rest.gate, event, Context())
        body = answer.get("body") or ""
        content = base64.b64decode(body) if answer.get("isBase64Encoded") else body.encode()
        return httpx2.Response(answer["statusCode"], headers=answer["headers"], content=content)


def talk(
    rest: Rest, key: str, *calls: tuple[str, dict[str, Any]], gateway: Gateway | None = None
) -> list[Any]:
    """What the official client is told: the names of the tools, then each call's result."""

    async def conversation() -> list[Any]:
        headers = {"Authorization": f"Bearer {key}"}
        async with (
            httpx2.AsyncClient(transport=gateway or Gateway(rest), headers=headers) as http,
            streamable_http_client(SERVER, http_client=http) as streams,
            ClientSession(streams[0], streams[1]) as session,
        ):
            await session.initialize()
            listed = await session.list_tools()
            return [listed, *[await session.call_tool(name, given) for name, given in calls]]

    return asyncio.run(conversation())


@pytest.fixture
def rest() -> Rest:
    made = Rest(plays([says("It is 3.11.")]))
    made.agent("a", system="x")
    return made


def one(name: str = "r") -> dict[str, Any]:
    return {"kind": "AgentRun", "name": name, "project": "web"}


def run_of(task: str) -> dict[str, Any]:
    return {**one(), "manifest": {"spec": {"agent": "a", "input": task}}}


@pytest.mark.req("NOD-528", "NOD-524")
def test_the_official_client_takes_a_run_from_its_start_to_its_answer(rest: Rest) -> None:
    listed, applied = talk(rest, rest.key, ("apply", run_of("Which Python?")))
    assert {tool.name for tool in listed.tools} == set(BY_TOOL_NAME) >= {"team", "record"}
    assert applied.structured_content["metadata"]["name"] == "r"
    rest.world.settle()
    _, got, answer, steps, team = talk(
        rest,
        rest.key,
        ("get", one()),
        ("answer", {"name": "r", "project": "web"}),
        ("steps", {"name": "r", "project": "web"}),
        ("team", one()),
    )
    assert got.structured_content["status"]["phase"] == "Succeeded"
    assert answer.content[0].text == "It is 3.11."
    assert steps.structured_content["kind"] == "StepList"
    assert team.structured_content == rest.get("agentruns/r/team").json
    assert team.structured_content["summary"]["action"] == "ViewAnswer"


@pytest.mark.req("NOD-525")
def test_record_writes_what_the_rest_call_writes(rest: Rest) -> None:
    body = {"payload": "And the other one?", "messageKey": "k1"}
    _, _, said, again = talk(
        rest,
        rest.key,
        ("apply", run_of("Which Python?")),
        ("record", {**one(), "subresource": "messages", "body": body}),
        ("record", {**one(), "subresource": "messages", "body": body}),
    )
    assert said.structured_content["turn"] == 2
    assert again.structured_content == said.structured_content


@pytest.mark.req("NOD-526", "NOD-246")
def test_a_connection_sees_its_own_organization_only(rest: Rest) -> None:
    rest.directory.create_organization("other")
    rest.directory.create_project("other", "web")
    foreign = rest.new_key(org="other")
    rest.run("r", agent="a")
    _, seen = talk(rest, foreign, ("get", one()))
    assert seen.is_error
    assert "NotFound" in seen.content[0].text
    assert not any("org" in tool.properties for tool in BY_TOOL_NAME.values())


@pytest.mark.req("NOD-527", "NOD-246", "NOD-283")
@pytest.mark.parametrize(
    ("permission", "tool", "given"),
    [
        ("agentruns:read", "team", one()),
        ("agentruns:write", "record", {**one(), "subresource": "cancel"}),
        ("agentruns:write", "apply", run_of("x")),
        ("agentruns:write", "delete", one()),
        ("agentruns:read", "steps", {"name": "r", "project": "web"}),
        ("agentruns:read", "answer", {"name": "r", "project": "web"}),
        ("agents:read", "list", {"kind": "Agent", "project": "web"}),
    ],
)
def test_a_tool_needs_its_permission_and_names_it(
    rest: Rest, permission: str, tool: str, given: dict[str, Any]
) -> None:
    _, refused = talk(rest, rest.new_key(permissions=("secrets:read",)), (tool, given))
    assert refused.is_error
    assert permission in refused.content[0].text
    assert "Forbidden" in refused.content[0].text


def test_a_client_without_a_good_key_gets_nowhere(rest: Rest) -> None:
    event = {
        "version": "2.0",
        "rawPath": "/mcp",
        "headers": {"authorization": "Bearer nodus_wrong", "content-type": "application/json"},
        "requestContext": {"http": {"method": "POST", "path": "/mcp"}, "stage": "$default"},
        "body": json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
        "isBase64Encoded": False,
    }
    answer = mcp.answer(rest.gate, event, Context())
    assert answer["statusCode"] == 401
    assert json.loads(answer["body"])["reason"] == "Unauthorized"


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_there_is_no_stream_and_no_session_to_ask_for(rest: Rest, method: str) -> None:
    event = {
        "version": "2.0",
        "rawPath": "/mcp",
        "headers": {"authorization": f"Bearer {rest.key}", "accept": "text/event-stream"},
        "requestContext": {"http": {"method": method, "path": "/mcp"}, "stage": "$default"},
        "isBase64Encoded": False,
    }
    answers = list[dict[str, Any]]()
    asked = threading.Thread(
        target=lambda: answers.append(mcp.answer(rest.gate, event, Context())), daemon=True
    )
    asked.start()
    asked.join(10)
    assert answers, "the server holds the request, and Lambda would end it"
    assert (answers[0]["statusCode"], answers[0]["headers"]["Allow"]) == (405, "POST")
    assert json.loads(answers[0]["body"])["reason"] == "MethodNotAllowed"


@pytest.mark.parametrize("number", ["1.0", "null", "{}", "true", "[1]"])
def test_a_message_whose_id_no_answer_could_carry_is_refused(rest: Rest, number: str) -> None:
    """It would be taken for one that wants no answer, and its client would wait for ever."""
    body = f'{{"jsonrpc": "2.0", "id": {number}, "method": "tools/list"}}'
    event = {
        "rawPath": "/mcp",
        "headers": {
            "authorization": f"Bearer {rest.key}",
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
        },
        "requestContext": {"http": {"method": "POST", "path": "/mcp"}, "stage": "$default"},
        "body": body,
        "isBase64Encoded": False,
    }
    answer = mcp.answer(rest.gate, event, Context())
    assert answer["statusCode"] == 400
    error = json.loads(answer["body"])
    assert (error["id"], error["error"]["code"]) == (None, -32600)


def test_a_request_is_one_use_of_its_key_also_when_it_calls_a_tool() -> None:
    rest = Rest(rate=Rate(per_second=1, burst=60))
    rest.agent("a", system="x")
    key, gateway = rest.new_key(), Gateway(rest)
    agent = {"kind": "Agent", "name": "a", "project": "web"}
    _, *results = talk(rest, key, *[("get", agent)] * 20, gateway=gateway)
    assert not any(result.is_error for result in results)
    left = 0
    while rest.get("agents", key=key).code == 200:
        left += 1
    assert gateway.requests >= 20
    assert gateway.requests + left == 60


def test_a_request_beyond_the_rate_calls_no_tool() -> None:
    rest = Rest(rate=Rate(per_second=1, burst=1))
    key = rest.new_key()
    assert rest.get("agents", key=key).code == 200
    given = {"kind": "Agent", "name": "b", "project": "web", "manifest": {"spec": {}}}
    params = {"name": "apply", "arguments": given}
    event = {
        "version": "2.0",
        "rawPath": "/mcp",
        "headers": {
            "authorization": f"Bearer {key}",
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
        },
        "requestContext": {"http": {"method": "POST", "path": "/mcp"}, "stage": "$default"},
        "body": json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}),
        "isBase64Encoded": False,
    }
    refused = mcp.answer(rest.gate, event, Context())
    assert (refused["statusCode"], refused["headers"]["Retry-After"]) == (429, "1")
    assert json.loads(refused["body"])["reason"] == "TooManyRequests"
    assert rest.get("agents/b").code == 404


@pytest.mark.parametrize(
    ("tool", "given", "named"),
    [
        ("get", {"kind": "AgentRun", "project": "web"}, "name"),
        ("get", {**one(), "kind": "Pod"}, "kind"),
        ("get", {**one(), "org": "other"}, "org"),
        ("get", {"kind": "AgentRun", "name": "r"}, "project"),
        ("list", {"kind": "Agent"}, "project"),
        ("record", {**one(), "subresource": "team-controls"}, "subresource"),
        ("list", {"kind": "Agent", "project": "web", "limit": 0}, "limit"),
        ("record", {**one(), "subresource": "../../secrets"}, "subresource"),
        ("nothing", {}, "nothing"),
    ],
)
def test_wrong_arguments_are_refused_by_name(
    rest: Rest, tool: str, given: dict[str, Any], named: str
) -> None:
    _, refused = talk(rest, rest.key, (tool, given))
    assert refused.is_error
    assert named in refused.content[0].text


def test_what_belongs_to_the_organization_needs_no_project(rest: Rest) -> None:
    project = {"kind": "Project", "name": "new"}
    _, listed, made, got, gone, pointless = talk(
        rest,
        rest.key,
        ("list", {"kind": "Project"}),
        ("apply", {**project, "manifest": {"spec": {}}}),
        ("get", project),
        ("delete", project),
        ("get", {"kind": "Project", "name": "web", "project": "web"}),
    )
    assert [item["metadata"]["name"] for item in listed.structured_content["items"]] == ["lab", "web"]
    assert not any(result.is_error for result in (listed, made, got, gone))
    assert pointless.is_error
    assert "project" in pointless.content[0].text


def test_only_what_is_there_is_offered(rest: Rest) -> None:
    for word in BY_TOOL_NAME["record"].properties["subresource"]["enum"]:
        taken = rest.post(f"agentruns/none/{word}", {})
        assert (taken.code, taken.json["reason"]) != (404, "NotFound") or "path" not in taken.json["message"]
    assert (
        "team-controls" not in json.dumps(BY_TOOL_NAME["record"].schema) + BY_TOOL_NAME["record"].description
    )


@pytest.mark.parametrize("name", ["../b", "a/b", "..", "%2e%2e", "x?limit=1", "x#y"])
def test_no_name_leads_out_of_its_place(rest: Rest, name: str) -> None:
    _, refused = talk(rest, rest.key, ("get", {"kind": "Agent", "name": name, "project": "web"}))
    assert refused.is_error
    assert "NotFound" in refused.content[0].text


@pytest.mark.req("NOD-053", "NOD-243", "NOD-247", "NOD-248")
def test_the_team_view_of_a_run_without_subagents_says_how_it_stands(rest: Rest) -> None:
    rest.run("r", agent="a")
    waiting = rest.get("agentruns/r/team").json
    assert waiting["summary"] | {"counts": {}} == {
        "state": "Queued",
        "message": "The run has not begun yet.",
        "action": "None",
        "counts": {},
        "peakParallelModelCalls": 0,
    }
    assert waiting["items"] == []
    assert waiting["verification"] == {"state": "NotVerified"}
    rest.world.settle()
    assert rest.get("agentruns/r/team").json["summary"]["action"] == "ViewAnswer"
    assert rest.get("agentruns/none/team").code == 404


@pytest.mark.req("NOD-248")
@pytest.mark.parametrize(
    ("status", "action"),
    [
        ({"phase": "Running"}, "None"),
        ({"phase": "Succeeded"}, "ViewAnswer"),
        ({"phase": "Waiting", "reason": "MessageWait"}, "SendMessage"),
        ({"phase": "Waiting", "reason": "NeedsResolution"}, "InspectRun"),
        ({"phase": "Waiting", "reason": "MaxCostReached"}, "None"),
        ({"phase": "Failed", "reason": "DeadlineExceeded"}, "InspectRun"),
        ({"phase": "Cancelled"}, "None"),
    ],
)
def test_what_can_be_done_next_follows_from_how_the_run_stands(status: dict[str, Any], action: str) -> None:
    assert summary(status)["action"] == action
    assert summary(status)["message"]
