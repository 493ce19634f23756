"""The scripted server's record of requests, its counters, its key and its streams."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession
from aiohttp.test_utils import TestServer

from localstack.scripted.recorder import Recorder
from localstack.scripted.server import make_server

KEY = {"x-api-key": "right"}
SCRIPT = """
match: hello
replies:
  - thinking: [{text: hm, signature: s}, {redacted: r}]
    text: hi
    calls: [{name: now, arguments: {a: 1}}]
"""


def serve(tmp_path: Path, use: Callable[[ClientSession, str], Awaitable[None]]) -> None:
    (tmp_path / "s.yaml").write_text(SCRIPT)

    async def run() -> None:
        app = make_server([tmp_path], tmp_path / "state", "right").app()
        async with TestServer(app) as server, ClientSession() as client:
            await use(client, str(server.make_url("")).rstrip("/"))

    asyncio.run(run())


def body(**more: Any) -> bytes:
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": "hello"}], **more}).encode()


@pytest.mark.parametrize("path", ["/messages", "/v1/messages", "/chat/completions", "/v1/chat/completions"])
def test_requests_are_recorded_byte_for_byte(tmp_path: Path, path: str) -> None:
    sent = (
        b' {"model" : "m\\u00e9", "n": 1.00, "messages":[{"role":"user","content":"hello \xf0\x9f\x8d\xb8"}]}'
    )

    async def use(client: ClientSession, url: str) -> None:
        async with client.post(url + path, data=sent, headers=KEY) as answer:
            assert answer.status == 200
        async with client.get(f"{url}/_requests", headers=KEY) as answer:
            (entry,) = (await answer.json())["requests"]
        assert entry["body"].encode() == sent
        assert entry["played"] == "s.yaml[0][0]"
        async with client.delete(f"{url}/_requests", headers=KEY) as answer:
            assert answer.status == 200
        async with client.get(f"{url}/_counters", headers=KEY) as answer:
            assert await answer.json() == {"requests": 0, "open": 0, "mostOpen": 0}

    serve(tmp_path, use)


def test_nothing_works_without_the_key(tmp_path: Path) -> None:
    async def use(client: ClientSession, url: str) -> None:
        asked = [("POST", "/v1/messages"), ("POST", "/v1/chat/completions")]
        asked += [("GET", "/_requests"), ("DELETE", "/_requests"), ("GET", "/_counters")]
        for headers in (
            {},
            {"x-api-key": "wrong"},
            {"Authorization": "Bearer wrong"},
            {"x-api-key": "rïght"},
        ):
            for method, path in asked:
                async with client.request(method, url + path, data=body(), headers=headers) as answer:
                    assert answer.status == 401

    serve(tmp_path, use)


def test_a_request_that_is_none_is_refused_and_counted(tmp_path: Path) -> None:
    async def use(client: ClientSession, url: str) -> None:
        async with client.post(f"{url}/v1/messages", data=b"\xff{", headers=KEY) as answer:
            assert answer.status == 400
        async with client.get(f"{url}/_requests?limit=x", headers=KEY) as answer:
            assert answer.status == 400
        async with client.get(f"{url}/_requests?after=0&limit=5", headers=KEY) as answer:
            (entry,) = (await answer.json())["requests"]
        assert entry["bodyBase64"]

    serve(tmp_path, use)


def test_the_log_is_bounded(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, limit=1000)
    for number in range(100):
        recorder.write({"number": number}, b"x" * 100)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 2000
    kept = [entry["number"] for entry in recorder.requests(after=0, limit=1000)]
    assert kept == list(range(kept[0], 100))
    assert [entry["number"] for entry in recorder.requests(after=97, limit=1)] == [99]


def test_a_reply_can_be_streamed_in_both_formats(tmp_path: Path) -> None:
    async def use(client: ClientSession, url: str) -> None:
        async with client.post(f"{url}/v1/messages", data=body(stream=True), headers=KEY) as answer:
            events = [
                json.loads(line[6:]) for line in (await answer.text()).splitlines() if line.startswith("data")
            ]
        starts = [
            event["content_block"]["type"] for event in events if event["type"] == "content_block_start"
        ]
        assert starts == ["thinking", "redacted_thinking", "text", "tool_use"]
        assert events[0]["type"] == "message_start"
        assert events[-2]["delta"]["stop_reason"] == "tool_use"
        assert events[-1]["type"] == "message_stop"
        async with client.post(f"{url}/v1/chat/completions", data=body(stream=True), headers=KEY) as answer:
            lines = [line[6:] for line in (await answer.text()).splitlines() if line]
        assert lines[-1] == "[DONE]"
        first, last, usage = (json.loads(line) for line in lines[:-1])
        assert first["choices"][0]["delta"]["tool_calls"][0]["index"] == 0
        assert last["choices"][0]["finish_reason"] == "tool_calls"
        assert usage["usage"]["completion_tokens"] > 0

    serve(tmp_path, use)
