"""Real faults on the wire: error statuses, redirects, slow, cut and missing answers."""

import asyncio
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

from aiohttp import web

from localstack.scripted.heard import Wire
from localstack.scripted.script import Fault, Reply
from localstack.scripted.speak import error_body

_SLICES_PER_S = 10


class FaultCounter:
    """Knows how often each fault has happened since the server started, or since it was reset."""

    def __init__(self) -> None:
        self._happened: Counter[tuple[str, int]] = Counter()

    def next(self, source: str, reply: Reply) -> Fault | None:
        """The fault of this playing of the reply: the first one in its list that still has times left."""
        for place, fault in enumerate(reply.faults):
            if fault.times is None or self._happened[(source, place)] < fault.times:
                self._happened[(source, place)] += 1
                return fault
        return None

    def reset(self) -> None:
        """All faults have their whole number of times again."""
        self._happened.clear()


async def answer(
    request: web.Request, wire: Wire, body: bytes, fault: Fault, on_status: Callable[[int], None]
) -> web.StreamResponse:
    """Answers with `body`, and with what the fault does to it. `on_status` is told the status that is sent."""
    await asyncio.sleep(fault.delay_s)
    if fault.hang:
        await asyncio.Event().wait()  # until the client goes: aiohttp then cancels this handler
    if fault.drop:
        _abort(request)
        return web.Response(status=500)  # goes nowhere: the connection is gone
    status = fault.status or (302 if fault.location else 200)
    on_status(status)
    if status != 200:
        body = (
            error_body(wire, status, f"scripted fault: HTTP {status}")
            if fault.body is None
            else fault.body.encode()
        )
    response = web.StreamResponse(status=status, headers=_headers(fault))
    response.content_length = len(body)
    await response.prepare(request)
    whole = body if fault.cut_after_bytes is None else body[: fault.cut_after_bytes]
    await _write(response, whole, fault.bytes_per_s)
    if len(whole) < len(body):
        await response.drain()
        _abort(request)
        return response
    await response.write_eof()
    return response


def _headers(fault: Fault) -> dict[str, str]:
    headers = {"Content-Type": "application/json"}
    if fault.location is not None:
        headers["Location"] = fault.location
    if fault.retry_after is not None:
        headers["Retry-After"] = _retry_after(fault.retry_after)
    return headers | dict(fault.headers)


def _retry_after(text: str) -> str:
    """Seconds as they are; `date+SECONDS` as the HTTP date so many seconds from now."""
    if not text.startswith("date+"):
        return text
    at = datetime.now(UTC) + timedelta(seconds=float(text.removeprefix("date+")))
    return format_datetime(at, usegmt=True)


async def _write(response: web.StreamResponse, body: bytes, bytes_per_s: int | None) -> None:
    if not bytes_per_s:
        await response.write(body)
        return
    size = max(1, bytes_per_s // _SLICES_PER_S)
    for start in range(0, len(body), size):
        await response.write(body[start : start + size])
        await asyncio.sleep(size / bytes_per_s)


def _abort(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.close()
