"""Calls to the server: one key per logical call, retries only where they are safe, no call over 25 s."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from nodus._status import from_status
from nodus._wire import Answer, Request
from nodus.errors import (
    ApiError,
    NodusError,
    OutcomeUnknownError,
    ServerUnreachableError,
    UnexpectedAnswerError,
)

if TYPE_CHECKING:
    from nodus._config import Settings
    from nodus._flow import Flow
    from nodus._wire import Wire

CALL_SECONDS = 25.0  # no call stays open longer (NODQ-79)
DOWNLOAD_SECONDS = 600.0  # a stored answer comes from the object store, not through the API
TRIES = 4
LONGEST_PAUSE_SECONDS = 30.0  # a longer Retry-After is the caller's to wait for
FIRST_PAUSE_SECONDS = 0.2
MAX_REDIRECTS = 3
# Behind the gateway no answer is larger than 10 MiB; these bound what anything else may make this process hold.
MOST_ANSWER_BYTES = 16 * 1024 * 1024
MOST_DOWNLOAD_BYTES = 512 * 1024 * 1024
_OF_CONTENTS = (DOWNLOAD_SECONDS, MOST_DOWNLOAD_BYTES)
_PASSING_CODES = frozenset({429, 500, 502, 503, 504})
_REQUEST_ID_HEADERS = ("x-request-id", "apigw-requestid", "x-amzn-requestid")
JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


class Call:
    """One logical call; its idempotency key is the same in every try (FLD-16).

    ``repeatable``: sending it twice does no more than sending it once (it states an outcome, or the server keeps
    its key), so a lost answer may be asked for again. A merge patch and a delete are not.
    """

    def __init__(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = JSON,
        repeatable: bool = False,
        key: str | None = None,
        accept: str = f"{JSON}, text/plain",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.method = method
        self.path = path
        self.query = query or {}
        self.body = body
        self.content_type = content_type
        self.repeatable = repeatable or method == "GET"
        self.accept = accept
        self.headers = headers or {}
        self.key = os.urandom(16).hex() if key is None else key


class Reply(Answer):
    """An answer, and what it means."""

    def json(self) -> dict[str, Any]:
        """The body as a JSON object.

        Raises:
            UnexpectedAnswerError: it is none: something between here and the server answered.
        """
        value = parsed(self.content)
        if not isinstance(value, dict):
            raise UnexpectedAnswerError(
                f"the answer ({self.code}) is no JSON object; is the server's address right?"
            )
        return cast("dict[str, Any]", value)

    def retry_after(self) -> float | None:
        """Seconds of ``Retry-After`` (a number or an HTTP date), or ``None``."""
        text = self.headers.get("retry-after")
        if text is None:
            return None
        try:
            seconds = float(text)
        except ValueError:
            return _seconds_until(text)
        return max(0.0, seconds) if seconds < float("inf") else None

    def error(self) -> ApiError:
        """The refusal that this answer carries."""
        try:
            status = self.json()
        except UnexpectedAnswerError:
            status = {}
        # A gateway's own refusal is no Status: its reason is that of its code.
        kind = status if status.get("kind") == "Status" else {"message": status.get("message")}
        return from_status(kind, code=self.code, retry_after=self.retry_after(), request_id=self.request_id())

    def request_id(self) -> str | None:
        """By what the server's logs name the call."""
        found = (self.headers.get(name) for name in _REQUEST_ID_HEADERS)
        return next((value for value in found if value), None)


def parsed(content: bytes | str) -> Any:
    """A JSON value; ``None`` for what is none, or is nested too deeply to be one of the server's."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


class Transport:
    """Makes calls with the settings' key over a wire."""

    def __init__(self, settings: Settings, wire: Wire) -> None:
        self.settings = settings
        self.wire = wire

    def send(self, call: Call, *, within: float | None = None) -> Flow[Reply]:
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
        until = None if within is None else self.wire.clock() + within
        for attempt in range(TRIES):
            last = attempt == TRIES - 1
            pause = self._pause(attempt)
            try:
                reply = yield from self._once(call, until)
            except (ServerUnreachableError, OutcomeUnknownError) as error:
                repeat = isinstance(error, ServerUnreachableError) or call.repeatable
                if last or not repeat or not self._fits(pause, until):
                    raise
                yield partial(self.wire.sleep, pause)
                continue
            if reply.code < 400:
                return reply
            wait = _pause_after(reply, call, pause)
            if last or wait is None or not self._fits(wait, until):
                raise reply.error()
            yield partial(self.wire.sleep, wait)
        raise AssertionError("the last try returns or raises")

    def fetch(self, reply: Reply, progress: Callable[[int], None] | None = None) -> Flow[bytes]:
        """The content that a redirect points to, asked for without the key (it belongs to another host).

        ``progress`` is called with each number of bytes that has come.

        Raises:
            NodusError: the address cannot be followed or does not answer with success.
        """
        # Whoever talks to the server under TLS gets the content under TLS, too.
        schemes = ("https://",) if self.settings.server.startswith("https://") else ("http://", "https://")
        address = self.settings.server
        for _ in range(MAX_REDIRECTS):
            address = _joined(address, reply.headers.get("location", ""))
            if not address.startswith(schemes):
                break
            reply = yield from self._moved(Request("GET", address, {}, None, *_OF_CONTENTS, progress))
            if reply.code < 300:
                return reply.content
            if reply.code >= 400:
                raise NodusError(
                    f"the stored answer cannot be fetched (HTTP {reply.code}); ask again for a new address",
                    reason="AnswerUnavailable",
                )
        raise UnexpectedAnswerError("the server's redirect leads nowhere")

    def store(
        self,
        address: str,
        content: bytes,
        headers: Mapping[str, str],
        progress: Callable[[int], None] | None = None,
    ) -> Flow[None]:
        """Put a content to an address that the server has given, without the key.

        Raises:
            NodusError: the address cannot be used, or does not answer with success.
        """
        if self.settings.server.startswith("https://") and not address.startswith("https://"):
            raise UnexpectedAnswerError("the server's address for an upload is not under TLS")
        reply = yield from self._moved(Request("PUT", address, headers, content, *_OF_CONTENTS, progress))
        if reply.code >= 300:
            raise NodusError(
                f"the content cannot be stored (HTTP {reply.code}); ask again for a new address",
                reason="UploadRefused",
            )

    def _moved(self, request: Request) -> Flow[Reply]:
        """The answer of the object store, which takes and gives the same content as often as it is asked."""
        for attempt in range(TRIES):
            last = attempt == TRIES - 1
            try:
                answer: Answer = yield partial(self.wire.exchange, request)
            except (ServerUnreachableError, OutcomeUnknownError):
                if last:
                    raise
            else:
                if last or answer.code not in _PASSING_CODES:
                    return Reply(*answer)
            yield partial(self.wire.sleep, self._pause(attempt))
        raise AssertionError("the last try returns or raises")

    def _pause(self, attempt: int) -> float:
        return self.wire.chance() * FIRST_PAUSE_SECONDS * 2**attempt + 0.05

    def _fits(self, seconds: float, until: float | None) -> bool:
        return until is None or self.wire.clock() + seconds < until

    def _once(self, call: Call, until: float | None) -> Flow[Reply]:
        headers = {**call.headers, "Authorization": f"Bearer {self.settings.token}", "Accept": call.accept}
        if self.settings.org:
            headers["Nodus-Org"] = self.settings.org
        if call.method != "GET":
            headers["Idempotency-Key"] = call.key
        content = None
        if call.body is not None:
            content = call.body if isinstance(call.body, bytes) else _encoded(call.body)
            headers["Content-Type"] = call.content_type
        url = self.settings.server + call.path
        if call.query:
            from urllib.parse import urlencode  # noqa: PLC0415 (`import nodus` does without it)

            url += "?" + urlencode(call.query)
        left = CALL_SECONDS if until is None else max(0.1, min(CALL_SECONDS, until - self.wire.clock()))
        request = Request(call.method, url, headers, content, left, MOST_ANSWER_BYTES)
        answer: Answer = yield partial(self.wire.exchange, request)
        return Reply(*answer)


def _pause_after(reply: Reply, call: Call, pause: float) -> float | None:
    """Seconds to wait before the same call is made again; ``None``: it is not."""
    asked = reply.retry_after()
    if asked is not None and (reply.code == 429 or (reply.code == 503 and call.repeatable)):
        return asked + pause if asked <= LONGEST_PAUSE_SECONDS else None
    if reply.code in _PASSING_CODES and call.repeatable:
        return pause
    return None


def _joined(address: str, location: str) -> str:
    from urllib.parse import urljoin  # noqa: PLC0415 (`import nodus` does without it)

    try:
        return urljoin(address, location)
    except ValueError:
        return ""


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
