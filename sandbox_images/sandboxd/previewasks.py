"""Asks of previews: requests to services that listen in the sandbox (docs/decisions/0033).

An answer that is too large for its row waits here for a moment: whoever has asked learns its size, and then where it
may be sent.
"""

import asyncio
import base64
import binascii
import os
import secrets
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass

from sandboxd.asks import Handler
from sandboxd.contents import Contents, Held
from sandboxd.execcore.host import ProcessHost
from sandboxd.execcore.spec import ExecState
from sandboxd.httpwork import MODULES
from sandboxd.requests import Fields, InvalidRequestError
from sandboxd.results import Result, answer_result, failed_result
from sandboxd.workdesk import WorkDesk

MOST_INLINE_BYTES = 128 * 1024
"""Of a body in an ask or an answer; more goes by a store."""

MOST_BYTES = 4 * 1024 * 1024
"""Of a body."""

MOST_AT_ONCE = 8
LONGEST_S = 15.0
"""From the request to the last byte of its answer."""

HELD_S = 10.0
"""For so long a large answer waits for its address."""

_LARGEST_PORT = 65_535
_UNSENT = frozenset({"unreachable", "no_network"})


@dataclass(frozen=True)
class _Waiting:
    """A large answer, and what lets go of it."""

    held: Held
    size: int
    room: AsyncExitStack


class PreviewAsks:
    """Passes requests to services, and their answers back.

    Args:
        contents: bodies, of at most `MOST_AT_ONCE` exchanges at a time.
        interpreter: Python that the commands' user can execute.
    """

    def __init__(
        self, host: ProcessHost, contents: Contents, interpreter: str = sys.executable, held_s: float = HELD_S
    ) -> None:
        self._desk = WorkDesk(host, "httpwork", MODULES, noun="request", interpreter=interpreter)
        self._contents = contents
        self._held_s = held_s
        self._waiting: dict[str, _Waiting] = {}
        self._leaving: set[asyncio.Task[None]] = set()

    @property
    def handlers(self) -> Mapping[str, Handler]:
        """Who does which kind."""
        return {"http": self._http, "http_body": self._body}

    async def _http(self, fields: Fields) -> Result:
        header = {
            "port": _port(fields),
            "method": fields.text("method"),
            "target": fields.text("target"),
            "headers": _headers(fields),
            "most": MOST_BYTES,
        }
        content, within_s = _content(fields), fields.seconds("timeoutS", LONGEST_S, 0.1, LONGEST_S)
        async with AsyncExitStack() as room:
            held = await room.enter_async_context(self._contents.holding())
            if fields.has("url"):
                fetched = await self._fetched(fields, held)
                if not isinstance(fetched, bytes):
                    return fetched
                content = fetched
            result = await self._desk.work(
                {**header, "fd": held.fd}, content, start_to_end_s=within_s, fds=(held.fd,)
            )
            if result["state"] != "exited":
                return _known(result)
            size = os.fstat(held.fd).st_size
            if size <= MOST_INLINE_BYTES:
                body = os.pread(held.fd, size, 0)
                return {**result, "size": size, "content": base64.b64encode(body).decode()}
            return {**result, "size": size, "held": self._keep(_Waiting(held, size, room.pop_all()))}

    async def _fetched(self, fields: Fields, held: Held) -> bytes | Result:
        """The body of a request from a store, or why it is not there; the place is empty again."""
        size = min(fields.whole("size", 0), MOST_BYTES)
        trouble = await self._contents.fetched(held, fields.text("url"), size, fields.text("sha256"))
        if trouble is not None:
            return trouble
        body = os.pread(held.fd, size, 0)
        os.ftruncate(held.fd, 0)
        return body

    async def _body(self, fields: Fields) -> Result:
        url, waiting = fields.text("url"), self._waiting.pop(fields.text("held"), None)
        if waiting is None:
            return failed_result("not_found", "There is no such answer (any more). Make the request again.")
        async with waiting.room:
            trouble = await self._contents.sent(waiting.held, url, waiting.size)
            return trouble or answer_result({"size": waiting.size})

    def _keep(self, waiting: _Waiting) -> str:
        name = secrets.token_hex(16)
        self._waiting[name] = waiting
        asyncio.get_running_loop().call_later(self._held_s, self._drop, name)
        return name

    def _drop(self, name: str) -> None:
        """Nobody has said where it may be sent."""
        waiting = self._waiting.pop(name, None)
        if waiting is not None:
            leaving = asyncio.ensure_future(waiting.room.aclose())
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)


def _known(result: Result) -> Result:
    """What a service that was reached has done with a request that has no answer, nobody knows."""
    if result["state"] == ExecState.FAILED.value and result["reason"] not in _UNSENT:
        return {**result, "state": ExecState.LOST.value}
    return result


def _port(fields: Fields) -> int:
    port = fields.whole("port", 0)
    if not 1 <= port <= _LARGEST_PORT:
        raise InvalidRequestError(f"port must be 1 to {_LARGEST_PORT}.")
    return port


def _headers(fields: Fields) -> list[tuple[str, str]]:
    """Names and values in turn."""
    texts = fields.texts("headers")
    if len(texts) % 2:
        raise InvalidRequestError("headers must be names and values in turn.")
    return list(zip(texts[::2], texts[1::2], strict=True))


def _content(fields: Fields) -> bytes:
    try:
        content = base64.b64decode(fields.text("content", ""), validate=True)
    except (binascii.Error, ValueError):
        raise InvalidRequestError("content must be base64.") from None
    if len(content) > MOST_INLINE_BYTES:
        raise InvalidRequestError(f"content has more than {MOST_INLINE_BYTES} bytes.")
    return content
