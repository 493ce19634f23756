"""MCP on the deployed local cloud, by the official client over HTTP."""

import asyncio
from typing import Any

import httpx2
import pytest
import yaml
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client

from localstack.testing import TestCloud
from tests.integration.runs.person import SONNET


def talk(cloud: TestCloud, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    context = yaml.safe_load(cloud.configuration.read_text())["contexts"]["local"]
    server, headers = f"{context['server']}/mcp", {"Authorization": f"Bearer {context['token']}"}

    async def conversation() -> list[Any]:
        async with (
            httpx2.AsyncClient(headers=headers, timeout=30) as http,
            streamable_http_client(server, http_client=http) as streams,
            ClientSession(streams[0], streams[1]) as session,
        ):
            await session.initialize()
            listed = await session.list_tools()
            return [listed, *[await session.call_tool(name, given) for name, given in calls]]

    return asyncio.run(conversation())


@pytest.mark.req("NOD-528")
def test_a_client_defines_an_agent_and_starts_a_run(local_cloud: TestCloud) -> None:
    agent = {"kind": "Agent", "name": "mcp-agent", "project": "default"}
    run = {"kind": "AgentRun", "name": "mcp-run", "project": "default"}
    listed, applied, started, stopped, refused = talk(
        local_cloud,
        ("apply", {**agent, "manifest": {"spec": {"model": SONNET}}}),
        ("apply", {**run, "manifest": {"spec": {"agent": "mcp-agent", "input": "hello"}}}),
        ("record", {**run, "subresource": "cancel"}),
        ("get", {**run, "name": "none"}),
    )
    assert {"team", "record"} <= {tool.name for tool in listed.tools}
    assert applied.structured_content["metadata"]["name"] == "mcp-agent"
    assert started.structured_content["kind"] == "AgentRun"
    assert stopped.structured_content["metadata"]["uid"] == started.structured_content["metadata"]["uid"]
    assert refused.is_error
