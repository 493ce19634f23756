"""HTTP calls to the server: one key per logical call, retries only where they are safe, no call over 25 s."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlencode, urljoin

from nodus._version import __version__
from nodus.errors import (
    ApiError,
    ConfigError,
    NodusError,
    OutcomeUnknownError,
    ServerUnreachableError,
    from_status,
)

if TYPE_CHECKING:
    import httpx2

    from nodus._config import Settings

CALL_SECONDS = 25.0  # no call stays open longer (NODQ-79)
CONNECT_SECONDS = 5.0
DOWNLOAD_SECONDS = 600.0  # a stored answer comes from the object store, not through the API
TRIES = 4
LONGEST_PAUSE_SECONDS = 30.0  # a longer Retry-After is the caller's to wait for
FIRST_PAUSE_SECONDS = 0.2
MAX_REDIRECTS = 3
_PASSING_CODES = frozenset({429, 500, 502, 503, 504})
JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


@dataclass(frozen=True)
class Call:
    """One logical call; its idempotency key is the same in every try (FLD-16).

    ``repeatable``: sending it twice does no more than sending it once (it states an outcome, or the server keeps
    its key), so a lost answer may be asked for again. A merge patch and a delete are not.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    body: Any = None
    content_type: str = JSON
    repeatable: bool = False
    key: str = field(default_factory=lambda: os.urandom(16).hex())

    @property
    def may_repeat(self) -> bool:
        """Whether the call may be made again after its answer was lost."""
        return self.repeatable or self.method == "GET"


@dataclass(frozen=True)
class Reply:
    """An answer, read to its end."""

    code: int
    headers: Mapping[str, str]
    content: bytes

    def json(self) -> dict[str, Any]:
        """The body as a JSON object.

        Raises:
            NodusError: it is none: something between here and the server answered.
        """
        try:
            value = json.loads(self.content)
        except ValueError:
            value = None
        if not isinstance(value, dict):
            raise NodusError(
                f"the answer ({self.code}) is no JSON object; is the server's address right?",
                reason="UnexpectedAnswer",
            )
        return cast("dict[str, Any]", value)

    def retry_after(self) -> float | None:
        """Seconds of ``Retry-After`` (a number or an HTTP date), or ``None``."""
        text = self.headers.get("retry-after")
        if text is None:
            return None
        try:
            return max(0.0, float(text))
        except ValueError:
            return _seconds_until(text)

    def error(self) -> ApiError:
        """The refusal that this answer carries."""
        try:
            status = self.json()
        except NodusError:
            status = {}
        # A gateway's own refusal is no Status: its reason is that of its code.
        kind = status if status.get("kind") == "Status" else {"message": status.get("message")}
        return from_status(kind, code=self.code, retry_after=self.retry_after())


class Transport:
    """Sends calls with the settings' key. Safe to use from several threads.

    ``sleep``, ``clock`` (seconds, monotonic) and ``chance`` (0 to 1) are replaced in tests.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.settings = settings
        self._sleep = sleep
        self._clock = clock
        self._chance = chance

    @cached_property
    def _http(self) -> httpx2.Client:
        # httpx2 takes 0.2 s to import: `import nodus` and `nodus --help` do without it.
        import httpx2  # noqa: PLC0415

        return httpx2.Client(
            follow_redirects=False,
            headers={"User-Agent": f"nodus-python/{__version__}"},
            limits=httpx2.Limits(keepalive_expiry=4.0),
        )

    def close(self) -> None:
        """Close the connections; a later call opens new ones."""
        http = self.__dict__.pop("_http", None)
        if http is not None:
            http.close()

    def send(self, call: Call, *, within: float | None = None) -> Reply:
        """Make a call, again where that is safe, and return its answer of success.

        Repeated are: connections that were refused, answers 429 that carry ``Retry-After`` (the server did
        nothing), and for calls that may be repeated also lost answers and 500, 502, 503, 504.

        Args:
            call: what to ask.
            within: seconds for all tries together; ``None``: only each try is bounded (25 s).

        Raises:
            ApiError: the server refused.
            ServerUnreachableError: no connection in any try.
            OutcomeUnknownError: sent, and no answer came.
        """
        until = None if within is None else self._clock() + within
        for attempt in range(TRIES):
            last = attempt == TRIES - 1
            pause = self._pause(attempt)
            try:
                reply = self._once(call, until)
            except (ServerUnreachableError, OutcomeUnknownError) as error:
                repeat = isinstance(error, ServerUnreachableError) or call.may_repeat
                if last or not repeat or not self._paused(pause, until):
                    raise
                continue
            if reply.code < 400:
                return reply
            wait = self._pause_after(reply, call, pause)
            if last or wait is None or not self._paused(wait, until):
                raise reply.error()
        raise AssertionError("the last try returns or raises")

    def fetch(self, reply: Reply) -> bytes:
        """The content that a redirect points to, asked for without the key (it belongs to another host).

        Raises:
            NodusError: the address cannot be followed or does not answer with success.
        """
        # Whoever talks to the server under TLS gets the content under TLS, too.
        schemes = ("https://",) if self.settings.server.startswith("https://") else ("http://", "https://")
        address = self.settings.server
        for _ in range(MAX_REDIRECTS):
            address = urljoin(address, reply.headers.get("location", ""))
            if not address.startswith(schemes):
                break
            reply = self._download(address)
            if reply.code < 300:
                return reply.content
            if reply.code >= 400:
                raise NodusError(
                    f"the stored answer cannot be fetched (HTTP {reply.code}); ask again for a new address",
                    reason="AnswerUnavailable",
                )
        raise NodusError("the server's redirect leads nowhere", reason="UnexpectedAnswer")

    def _download(self, address: str) -> Reply:
        for attempt in range(TRIES):
            last = attempt == TRIES - 1
            try:
                reply = self._exchange("GET", address, headers={}, content=None, seconds=DOWNLOAD_SECONDS)
            except (ServerUnreachableError, OutcomeUnknownError):
                if last:
                    raise
            else:
                if last or reply.code not in _PASSING_CODES:
                    return reply
            self._sleep(self._pause(attempt))
        raise AssertionError("the last try returns or raises")

    def _pause(self, attempt: int) -> float:
        return self._chance() * FIRST_PAUSE_SECONDS * 2**attempt + 0.05

    def _pause_after(self, reply: Reply, call: Call, pause: float) -> float | None:
        """Seconds to wait before the same call is made again; ``None``: it is not."""
        asked = reply.retry_after()
        if asked is not None and (reply.code == 429 or (reply.code == 503 and call.may_repeat)):
            return asked + pause if asked <= LONGEST_PAUSE_SECONDS else None
        if reply.code in _PASSING_CODES and call.may_repeat:
            return pause
        return None

    def _paused(self, seconds: float, until: float | None) -> bool:
        """Sleep, unless the time that is left does not allow it."""
        if until is not None and self._clock() + seconds >= until:
            return False
        self._sleep(seconds)
        return True

    def _once(self, call: Call, until: float | None) -> Reply:
        headers = {"Authorization": f"Bearer {self.settings.token}", "Accept": "application/json, text/plain"}
        if self.settings.org:
            headers["Nodus-Org"] = self.settings.org
        if call.method != "GET":
            headers["Idempotency-Key"] = call.key
        content = None
        if call.body is not None:
            content = _encoded(call.body)
            headers["Content-Type"] = call.content_type
        url = self.settings.server + call.path
        if call.query:
            url += "?" + urlencode(call.query)
        left = CALL_SECONDS if until is None else max(0.1, min(CALL_SECONDS, until - self._clock()))
        return self._exchange(call.method, url, headers=headers, content=content, seconds=left)

    def _exchange(
        self, method: str, url: str, *, headers: dict[str, str], content: bytes | None, seconds: float
    ) -> Reply:
        import httpx2  # noqa: PLC0415

        shown = url.partition("?")[0]  # what follows may hold a signature
        started = self._clock()
        timeout = httpx2.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds))
        try:
            with self._http.stream(
                method, url, headers=headers, content=content, timeout=timeout
            ) as response:
                chunks: list[bytes] = []
                for chunk in response.iter_bytes():
                    chunks.append(chunk)
                    if self._clock() - started > seconds:
                        raise httpx2.ReadTimeout("the answer takes too long")
                return Reply(response.status_code, response.headers, b"".join(chunks))
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout) as error:
            raise ServerUnreachableError(f"cannot reach {shown}: {error or type(error).__name__}") from error
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol, httpx2.LocalProtocolError) as error:
            raise ConfigError(f"the call to {shown} cannot be sent: {error}") from error
        except httpx2.RequestError as error:
            raise OutcomeUnknownError(
                f"{method} {shown} was sent but no answer came ({error or type(error).__name__}); "
                "look at the object before you call again"
            ) from error


def _encoded(body: Any) -> bytes:
    try:
        return json.dumps(body, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise NodusError(
            f"the text holds half a character ({error.object[error.start]!a}) that UTF-8 cannot carry",
            reason="Invalid",
        ) from error


def _seconds_until(date: str) -> float | None:
    """Seconds until an HTTP date, 0 when it is over; ``None`` for what is no date."""
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 (rare, and slow to import)

    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - time.time())
    except ValueError:
        return None
