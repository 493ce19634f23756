"""A control plane for tests: the sandbox link of docs/protocols.md §2 over real HTTP and WebSocket, which can lose
requests before and answers after they took effect."""

import asyncio
import hashlib
import json
import random
from typing import Any

from aiohttp import WSMsgType, web

SANDBOX = "sb-1"
ENROL_CODE = "enrol-once"
WARM, WARM_CODE = "warm-1", "warm-once"


def digest_of(kind: str, request: dict[str, Any]) -> str:
    canonical = json.dumps([kind, request], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


class LinkServer:
    """Keeps commands as rows, as the real journal does.

    Args:
        loss: probability that a request is lost before, and again that its answer is lost after its effect.
    """

    def __init__(self, loss: float = 0.0, seed: int = 1) -> None:
        self.loss = loss
        self.rows: dict[str, dict[str, Any]] = {}
        self.asks: dict[str, dict[str, Any]] = {}
        self.answers: dict[str, dict[str, Any]] = {}
        self.token_hash: str | None = None
        self.enrol_hash = hashlib.sha256(ENROL_CODE.encode()).hexdigest()
        self.is_somebodys = False
        self.questions: list[dict[str, Any]] = []
        self.hello: dict[str, Any] | None = None
        self.calls: list[str] = []
        self.stop = False
        self.most_pulled = 1000
        self.refuse_with: int | None = None
        self.refused_verb: str | None = None  # None: all of them
        self.bells: set[web.WebSocketResponse] = set()
        self.frames: list[str] = []
        self.changed = asyncio.Condition()
        self._random = random.Random(seed)
        self._runner: web.AppRunner | None = None
        self.port = 0

    async def __aenter__(self) -> "LinkServer":
        app = web.Application(client_max_size=32 * 1024 * 1024)
        app.router.add_post("/link/v1/sandboxes/{id}/{verb}", self._verb)
        app.router.add_post("/link/v1/warm/{id}/whose", self._whose)
        app.router.add_get("/bell", self._bell)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        for bell in tuple(self.bells):
            await bell.close()
        await self._runner.cleanup()

    @property
    def environ(self) -> dict[str, str]:
        return {
            "NODUS_SANDBOX_ID": SANDBOX,
            "NODUS_LINK_HTTP": f"http://127.0.0.1:{self.port}/link/v1",
            "NODUS_LINK_WS": f"ws://127.0.0.1:{self.port}/bell",
            "NODUS_ENROL_CODE": ENROL_CODE,
            "NODUS_HARD_DEADLINE_S": "120",
        }

    async def submit(self, command_id: str, kind: str, request: dict[str, Any]) -> None:
        self.rows[command_id] = {
            "command": {
                "id": command_id,
                "digest": digest_of(kind, request),
                "kind": kind,
                "request": request,
            },
            "state": "pending",
            "boot": None,
            "result": None,
            "cancel": False,
            "told": 0,
        }
        await self.ring()

    async def cancel(self, command_id: str) -> None:
        self.rows[command_id]["cancel"] = True
        await self.ring()

    async def ring(self) -> None:
        for bell in tuple(self.bells):
            await bell.send_str("pull")

    async def result(self, command_id: str) -> dict[str, Any]:
        await self.until(lambda: self.rows[command_id]["result"] is not None)
        return self.rows[command_id]["result"]

    async def run(self, command_id: str, kind: str, request: dict[str, Any]) -> dict[str, Any]:
        await self.submit(command_id, kind, request)
        return await self.result(command_id)

    async def ask(self, number: int, kind: str, request: dict[str, Any]) -> dict[str, Any]:
        """The answer to an ask; `number` is its own."""
        name = f"ask-00-{number:032x}"
        self.asks[name] = {"kind": kind, "request": request}
        await self.ring()
        await self.until(lambda: name in self.answers)
        return self.answers[name]

    async def until(self, condition: Any) -> None:
        async with self.changed:
            await self.changed.wait_for(condition)

    @property
    def warm_environ(self) -> dict[str, str]:
        """What differs for a machine that is nobody's yet."""
        return {"NODUS_SANDBOX_ID": WARM, "NODUS_ENROL_CODE": WARM_CODE, "NODUS_WARM": "1"}

    async def _whose(self, request: web.Request) -> web.StreamResponse:
        """Whose a machine is: from `is_somebodys` on the sandbox's, which this daemon's own code then enrols with."""
        if self._random.random() < self.loss:
            return _cut(request)
        body = await request.json()
        async with self.changed:
            self.questions.append(body)
            self.changed.notify_all()
        if self.refuse_with is not None:
            return web.json_response({}, status=self.refuse_with)
        assert (request.match_info["id"], body["enrolCode"]) == (WARM, WARM_CODE)
        if self.is_somebodys:
            self.enrol_hash = body["enrolHash"]
        if self._random.random() < self.loss:
            return _cut(request)
        return web.json_response({"sandbox": SANDBOX if self.is_somebodys else None})

    async def _verb(self, request: web.Request) -> web.StreamResponse:
        verb = request.match_info["verb"]
        if self._random.random() < self.loss:
            return _cut(request)
        body = await request.json()
        async with self.changed:
            self.calls.append(verb)
            answer = self._answer(verb, request, body)
            self.changed.notify_all()
        if self._random.random() < self.loss:
            return _cut(request)
        return answer

    def _answer(self, verb: str, request: web.Request, body: dict[str, Any]) -> web.Response:
        token = request.headers["Authorization"].removeprefix("Bearer ")
        token_hash = hashlib.sha256(token.encode()).hexdigest()
        if self.refuse_with is not None and self.refused_verb in (None, verb):
            return web.json_response({"message": "refused"}, status=self.refuse_with)
        if verb == "hello":
            return self._hello(token_hash, body)
        if token_hash != self.token_hash:
            return web.json_response({}, status=401)
        return self._pull(body) if verb == "pull" else self._done(body)

    def _hello(self, token_hash: str, body: dict[str, Any]) -> web.Response:
        code = str(body.get("enrolCode")).encode()
        right = hashlib.sha256(code).hexdigest() == self.enrol_hash and body["tokenHash"] == token_hash
        if self.token_hash not in (None, token_hash) or not right:
            return web.json_response({}, status=401)
        self.token_hash, self.hello = token_hash, body
        return web.json_response({"state": "running"})

    def _pull(self, body: dict[str, Any]) -> web.Response:
        commands, cancel, more = [], [], False
        for command_id, row in self.rows.items():
            if row["state"] == "pending":
                if len(commands) == self.most_pulled:
                    more = True
                    continue
                row["state"], row["boot"] = "claimed", body["boot"]
            if command_id not in body["have"] and row["state"] == "claimed" and row["boot"] == body["boot"]:
                commands.append(row["command"])
            if row["state"] == "claimed" and row["cancel"]:
                cancel.append(command_id)
        asks = [{"id": name, "key": "", **ask} for name, ask in self.asks.items() if name not in body["have"]]
        return web.json_response(
            {"commands": commands, "asks": asks, "cancel": cancel, "stop": self.stop, "more": more}
        )

    def _done(self, body: dict[str, Any]) -> web.Response:
        if body["id"].startswith("ask-"):
            self.asks.pop(body["id"], None)
            assert self.answers.setdefault(body["id"], body["result"]) == body["result"]
            return web.json_response({"state": "done"})
        row = self.rows[body["id"]]
        if row["boot"] != body["boot"]:
            return web.json_response({}, status=409)
        row["told"] += 1
        if row["state"] == "claimed":
            row["state"], row["result"] = "done", body["result"]
        else:
            assert row["result"] == body["result"], "an outcome changed between two tellings"
        return web.json_response({"state": "done"})

    async def _bell(self, request: web.Request) -> web.StreamResponse:
        if self._random.random() < self.loss:
            return _cut(request)
        assert request.query["sandbox"] == SANDBOX
        socket = web.WebSocketResponse()
        try:
            await socket.prepare(request)
        except ConnectionResetError:  # the daemon was killed meanwhile
            return socket
        async with self.changed:
            self.bells.add(socket)
            self.changed.notify_all()
        try:
            async for message in socket:
                if message.type is WSMsgType.TEXT:
                    self.frames.append(message.data)
        finally:
            self.bells.discard(socket)
        return socket


def _cut(request: web.Request) -> web.Response:
    assert request.transport is not None
    request.transport.abort()
    return web.Response(status=500)
