"""One HTTP client for both SDKs: no redirects, bounded time, bounded size, no proxy towards loopback.

Imports httpx2: import this module only when a call is about to be made.
"""

import queue
import threading
import time
from collections.abc import Callable, Iterator
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

import httpx2

from nodus_core.providers.posting import Answer, ConnectionFailure, NeverSendable, Timeouts

LARGEST_ANSWER = 64 * 1024 * 1024
"""Bytes of an answer: 16 MiB of reply (FLD-06), with room for what escapes add."""

_DEADLINE = "nodus.deadline"
UNSENT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.LocalProtocolError,
    httpx2.UnsupportedProtocol,
)


def http_client(
    kind: type[httpx2.Client],
    base_url: str | None,
    timeouts: Timeouts,
    transport: httpx2.BaseTransport | None = None,
    *,
    largest: int = LARGEST_ANSWER,
) -> httpx2.Client:
    """A client for one endpoint; `base_url` None is a public one. Used by several threads at once.

    `kind` is the SDK's own client class: it keeps idle connections alive while a model thinks. With a `transport`
    nothing of the environment counts. `largest`: bytes of an answer.
    """

    def begin(request: httpx2.Request) -> None:
        request.extensions = {**request.extensions, _DEADLINE: time.monotonic() + timeouts.reply}

    def bound(response: httpx2.Response) -> None:
        if response.headers.get("content-encoding", "") not in ("", "identity"):
            raise httpx2.DecodingError("the answer is compressed, though it was asked for as it is")
        if isinstance(response.stream, httpx2.SyncByteStream):
            response.stream = _Bounded(response.stream, response.request.extensions[_DEADLINE], largest)

    return kind(
        follow_redirects=False,
        trust_env=transport is None and not _is_loopback(base_url),
        transport=transport,
        timeout=httpx2.Timeout(timeouts.reply, connect=timeouts.connect, pool=timeouts.connect),
        # An answer that unpacks to gigabytes would pass any bound on what came over the wire.
        headers={"Accept-Encoding": "identity"},
        event_hooks={"request": [begin], "response": [bound]},
    )


class AnswerTooLarge(httpx2.ReadError):
    """An answer was longer than its reader takes; no more of it was read."""


class SdkSender:
    """Sends bodies through an SDK's client to one path; the two types are that SDK's errors.

    `client.post(path, content=…, cast_to=httpx2.Response)` is the SDKs' public way to make a request that they
    do not model. It keeps the body's bytes, which `messages.create(messages=[…])` would build anew.
    """

    def __init__(
        self,
        client: Any,
        path: str,
        status_error: type[Exception],
        connection_error: type[Exception],
        *,
        seconds: float,
    ) -> None:
        self._client = client
        self._path = path
        self._seconds = seconds
        self._status_error = status_error
        self._connection_error = connection_error

    def send(self, body: bytes) -> Answer:
        return within(self._seconds, lambda: self._send(body))

    def _send(self, body: bytes) -> Answer:
        try:
            response: httpx2.Response = self._client.post(self._path, content=body, cast_to=httpx2.Response)
        except self._status_error as error:
            response = error.response  # pyright: ignore[reportAttributeAccessIssue] - both SDKs have it
        except (self._connection_error, httpx2.HTTPError) as error:
            cause = error.__cause__ or error
            raise ConnectionFailure(cause, sent=not isinstance(cause, UNSENT)) from error
        except httpx2.InvalidURL as error:
            raise ConnectionFailure(NeverSendable(f"its address is none: {error}"), sent=False) from error
        return Answer(response.status_code, response.headers, response.content)

    def close(self) -> None:
        self._client.close()


def within(seconds: float, send: Callable[[], Answer]) -> Answer:
    """What `send` gives, or a failure once it has taken `seconds`; it then goes on by itself until it ends.

    Every read has a time-out of its own only: a server that drips its headers, or goes silent in its last moment,
    would hold the caller far beyond the time that its invocation has.
    """
    done: queue.SimpleQueue[Answer | BaseException] = queue.SimpleQueue()

    def work() -> None:
        try:
            done.put(send())
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is raised in the caller's thread
            done.put(error)

    threading.Thread(target=work, name="model-call", daemon=True).start()
    try:
        outcome = done.get(timeout=seconds)
    except queue.Empty:
        late = httpx2.ReadTimeout(f"the answer took longer than {seconds:g} s")
        raise ConnectionFailure(late, sent=True) from None
    if isinstance(outcome, BaseException):
        raise outcome
    return outcome


class _Bounded(httpx2.SyncByteStream):
    """A stream that ends with an error at the deadline, or past the largest size.

    The read timeout alone would let a server that sends one byte a minute hold a worker for ever.
    """

    def __init__(self, inner: httpx2.SyncByteStream, deadline: float, largest: int) -> None:
        self._inner = inner
        self._deadline = deadline
        self._largest = largest

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        for chunk in self._inner:
            size += len(chunk)
            if size > self._largest:
                raise AnswerTooLarge(f"the answer is larger than {self._largest} bytes")
            if time.monotonic() > self._deadline:
                raise httpx2.ReadTimeout("the answer took too long")
            yield chunk

    def close(self) -> None:
        self._inner.close()


def _is_loopback(base_url: str | None) -> bool:
    host = urlsplit(base_url).hostname if base_url else None
    if host is None:
        return False
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
