"""The HTTP face: both model wire formats, and the record of what was asked."""

import hashlib
import hmac
import time
from pathlib import Path

from aiohttp import web

from localstack.scripted.faults import FaultCounter, answer
from localstack.scripted.heard import Heard, Unreadable, Wire, listen
from localstack.scripted.library import Library
from localstack.scripted.play import Part, choose
from localstack.scripted.recorder import Recorder
from localstack.scripted.script import Fault
from localstack.scripted.speak import error_body, speak
from localstack.scripted.stream import speak_stream

LARGEST_REQUEST = 256 * 1024 * 1024
"""Bytes of a request: far above any conversation, so that the limits met in tests are those of Nodus."""

_MOST_LISTED = 100


class ScriptedServer:
    """Answers model calls from the scripts of a library. `key` must come with every request."""

    def __init__(self, library: Library, recorder: Recorder, key: str) -> None:
        self._library = library
        self._recorder = recorder
        self._key = key
        self._faults = FaultCounter()

    def app(self) -> web.Application:
        """The application. Both formats are served with and without `/v1`, as base addresses differ."""
        app = web.Application(client_max_size=LARGEST_REQUEST)
        for base in ("", "/v1"):
            app.router.add_post(f"{base}/messages", self._messages)
            app.router.add_post(f"{base}/chat/completions", self._completions)
        app.router.add_get("/_requests", self._requests)
        app.router.add_delete("/_requests", self._clear)
        app.router.add_get("/_counters", self._counters)
        return app

    async def _messages(self, request: web.Request) -> web.StreamResponse:
        return await self._model_call(request, "anthropic")

    async def _completions(self, request: web.Request) -> web.StreamResponse:
        return await self._model_call(request, "openai")

    async def _model_call(self, request: web.Request, wire: Wire) -> web.StreamResponse:
        if not self._knows(request):
            self._recorder.count("status", 401)
            return _error(wire, 401, "the key is not that of this scripted model server")
        number = self._recorder.begin()
        try:
            body = await request.read()
            return await self._play(request, wire, body, number)
        finally:
            self._recorder.end()

    async def _play(self, request: web.Request, wire: Wire, body: bytes, number: int) -> web.StreamResponse:
        entry = {"number": number, "at": time.time(), "path": request.path, "wire": wire}
        try:
            heard = listen(wire, body, hashlib.sha256(body).hexdigest())
        except Unreadable as error:
            self._recorder.write({**entry, "played": "unreadable"}, body)
            self._recorder.count("status", 400)
            return _error(wire, 400, str(error))
        part = choose(self._library, heard)
        self._recorder.write({**entry, "model": heard.model, "played": part.source}, body)
        self._recorder.count("model", heard.model)
        self._recorder.count("played", part.source)
        return await self._answer(request, heard, part, len(body))

    async def _answer(
        self, request: web.Request, heard: Heard, part: Part, request_bytes: int
    ) -> web.StreamResponse:
        fault = self._faults.next(part.source, part.reply) or Fault()
        body = speak(heard, part.reply, request_bytes)
        if heard.stream and fault == Fault():
            self._recorder.count("status", 200)
            return await speak_stream(request, heard.wire, body)
        return await answer(
            request, heard.wire, body, fault, lambda status: self._recorder.count("status", status)
        )

    async def _requests(self, request: web.Request) -> web.Response:
        if not self._knows(request):
            return web.json_response({"error": "the key is not right"}, status=401)
        try:
            after = int(request.query.get("after", "0"))
            limit = int(request.query.get("limit", str(_MOST_LISTED)))
        except ValueError:
            return web.json_response({"error": "`after` and `limit` are whole numbers"}, status=400)
        return web.json_response({"requests": self._recorder.requests(after, max(0, limit))})

    async def _clear(self, request: web.Request) -> web.Response:
        if not self._knows(request):
            return web.json_response({"error": "the key is not right"}, status=401)
        self._recorder.clear()
        self._faults.reset()
        return web.json_response({})

    async def _counters(self, request: web.Request) -> web.Response:
        if not self._knows(request):
            return web.json_response({"error": "the key is not right"}, status=401)
        return web.json_response(self._recorder.counters())

    def _knows(self, request: web.Request) -> bool:
        bearer = request.headers.get("Authorization", "").removeprefix("Bearer ")
        given = request.headers.get("x-api-key") or bearer
        return hmac.compare_digest(given.encode(), self._key.encode())


def _error(wire: Wire, status: int, message: str) -> web.Response:
    return web.Response(
        status=status, body=error_body(wire, status, message), content_type="application/json"
    )


def make_server(scripts: list[Path], state: Path, key: str) -> ScriptedServer:
    """A server over these script folders that keeps its record in the `state` folder."""
    library = Library(scripts)
    library.refresh()
    return ScriptedServer(library, Recorder(state), key)
