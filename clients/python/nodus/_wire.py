"""HTTP as it is sent and read, by those who block and by those who await: the only code that exists for both."""

from __future__ import annotations

import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from nodus._version import __version__
from nodus.errors import ConfigError, OutcomeUnknownError, ServerUnreachableError, UnexpectedAnswerError

if TYPE_CHECKING:
    import asyncio
    from types import TracebackType

    import httpx2

CONNECT_SECONDS = 5.0
_HEADERS = {"User-Agent": f"nodus-python/{__version__}"}
_PIECE_BYTES = 256 * 1024
_IDLE_SECONDS = 4.0  # shorter than any server or load balancer keeps a connection


class Request(NamedTuple):
    """One request: sent once, answered within ``seconds`` and ``most_bytes``, or an error."""

    method: str
    url: str
    headers: Mapping[str, str]
    content: bytes | None
    seconds: float
    most_bytes: int
    progress: Callable[[int], None] | None = None
    """Called with each number of bytes that has been sent or read of a large content."""


class Answer(NamedTuple):
    """An answer, read to its end."""

    code: int
    headers: Mapping[str, str]
    content: bytes


class Wire(Protocol):
    """Where flows' effects come from. What ``exchange``, ``sleep`` and a lock's ``acquire`` return is the driver's."""

    clock: Callable[[], float]
    """Seconds, monotonic."""
    chance: Callable[[], float]
    """A random number from 0 to 1."""
    sleep: Callable[[float], Any]
    """Lets so many seconds pass."""

    def exchange(self, request: Request) -> Any:
        """Send a request and give its ``Answer``."""
        ...

    def lock(self) -> Any:
        """A lock: ``acquire`` is an effect, ``release`` a plain call."""
        ...


class BlockingWire:
    """For those who block. Safe to use from several threads.

    ``sleep``, ``clock`` and ``chance`` are replaced in tests.
    """

    def __init__(
        self,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.sleep = sleep
        self.clock = clock
        self.chance = chance

    @cached_property
    def _http(self) -> httpx2.Client:
        # httpx2 takes 0.2 s to import: `import nodus` and `nodus --help` do without it.
        import httpx2  # noqa: PLC0415

        return httpx2.Client(
            follow_redirects=False, headers=_HEADERS, limits=httpx2.Limits(keepalive_expiry=_IDLE_SECONDS)
        )

    def lock(self) -> Any:
        """A lock between threads."""
        import threading  # noqa: PLC0415

        return threading.Lock()

    def exchange(self, request: Request) -> Answer:
        """Send a request and read its answer.

        Raises:
            ServerUnreachableError: nothing was sent.
            OutcomeUnknownError: sent, and no whole answer came.
            UnexpectedAnswerError: the answer is larger than any that the server gives.
        """
        body = _Body(request, self.clock)
        with (
            _Told(request),
            self._http.stream(
                request.method,
                request.url,
                headers=request.headers,
                content=_chunks(request),
                timeout=_timeout(request),
            ) as response,
        ):
            for chunk in response.iter_bytes():
                body.add(chunk)
            return Answer(response.status_code, response.headers, body.whole())

    def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        http = self.__dict__.pop("_http", None)
        if http is not None:
            http.close()


def _asyncio_sleep(seconds: float) -> Awaitable[None]:
    import asyncio  # noqa: PLC0415 (a program that blocks does without it)

    return asyncio.sleep(seconds)


class ConcurrentWire:
    """For those who await, under asyncio."""

    def __init__(
        self,
        *,
        sleep: Callable[[float], Awaitable[None]] = _asyncio_sleep,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.sleep = sleep
        self.clock = clock
        self.chance = chance

    @cached_property
    def _http(self) -> httpx2.AsyncClient:
        import httpx2  # noqa: PLC0415

        return httpx2.AsyncClient(
            follow_redirects=False, headers=_HEADERS, limits=httpx2.Limits(keepalive_expiry=_IDLE_SECONDS)
        )

    def lock(self) -> asyncio.Lock:
        """A lock between tasks."""
        import asyncio  # noqa: PLC0415

        return asyncio.Lock()

    async def exchange(self, request: Request) -> Answer:
        """As of ``BlockingWire``."""
        body = _Body(request, self.clock)
        with _Told(request):
            async with self._http.stream(
                request.method,
                request.url,
                headers=request.headers,
                content=_async_chunks(request),
                timeout=_timeout(request),
            ) as response:
                async for chunk in response.aiter_bytes():
                    body.add(chunk)
                return Answer(response.status_code, response.headers, body.whole())

    async def close(self) -> None:
        """As of ``BlockingWire``."""
        http = self.__dict__.pop("_http", None)
        if http is not None:
            await http.aclose()


class _Body:
    """An answer's bytes, bounded in size and time."""

    def __init__(self, request: Request, clock: Callable[[], float]) -> None:
        self._request = request
        self._clock = clock
        self._until = clock() + request.seconds
        self._chunks: list[bytes] = []
        self._size = 0

    def add(self, chunk: bytes) -> None:
        import httpx2  # noqa: PLC0415

        self._chunks.append(chunk)
        self._size += len(chunk)
        if self._request.progress is not None and self._request.content is None:
            self._request.progress(len(chunk))
        if self._size > self._request.most_bytes:
            raise UnexpectedAnswerError(
                f"{_shown(self._request)} answers with more than {self._request.most_bytes} bytes; "
                "is the server's address right?"
            )
        if self._clock() > self._until:
            raise httpx2.ReadTimeout("the answer takes too long")

    def whole(self) -> bytes:
        return b"".join(self._chunks)


def _chunks(request: Request) -> bytes | Iterator[bytes] | None:
    """What is sent: at once, or piece by piece where somebody looks on."""
    content, progress = request.content, request.progress
    if content is None or progress is None:
        return content

    def pieces() -> Iterator[bytes]:
        for start in range(0, len(content), _PIECE_BYTES):
            piece = content[start : start + _PIECE_BYTES]
            yield piece
            progress(len(piece))

    return pieces()


def _async_chunks(request: Request) -> bytes | AsyncIterator[bytes] | None:
    """Likewise, for those who await."""
    pieces = _chunks(request)
    if pieces is None or isinstance(pieces, bytes):
        return pieces

    async def awaited() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    return awaited()


def _shown(request: Request) -> str:
    return request.url.partition("?")[0]  # what follows may hold a signature


def _timeout(request: Request) -> httpx2.Timeout:
    import httpx2  # noqa: PLC0415

    return httpx2.Timeout(request.seconds, connect=min(CONNECT_SECONDS, request.seconds))


class _Told:
    """Says of a request that failed what is known: certainly not sent, cannot be sent, or perhaps done."""

    def __init__(self, request: Request) -> None:
        self._request = request

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        import httpx2  # noqa: PLC0415

        shown = _shown(self._request)
        if isinstance(error, (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)):
            raise ServerUnreachableError(f"cannot reach {shown}: {_why(error)}") from error
        if isinstance(error, (httpx2.InvalidURL, httpx2.UnsupportedProtocol, httpx2.LocalProtocolError)):
            raise ConfigError(f"the call to {shown} cannot be sent: {error}") from error
        if isinstance(error, httpx2.RequestError):
            raise OutcomeUnknownError(
                f"{self._request.method} {shown} was sent but no answer came ({_why(error)}); "
                "look at the object before you call again"
            ) from error


def _why(error: BaseException) -> str:
    return str(error) or type(error).__name__
