"""What a failed call means: come again later, never, or nobody knows (design §2, FLD-04)."""

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from nodus_core.inference.errors import (
    LONGEST_RETRY_AFTER_S,
    ContextTooLong,
    ModelOutcomeUnknown,
    ModelRefusedRequest,
    ModelUnavailable,
)
from nodus_core.kernel.errors import NodusError
from nodus_core.kernel.text import cut
from nodus_core.providers import redaction
from nodus_core.providers.posting import NeverSendable

_UNAVAILABLE = frozenset({425, 429, 500, 503, 521, 522, 523, 525, 526, 529, 530})
"""The provider itself says that it did not make this reply, or somebody on the way that it was not reached."""

_BUSY = frozenset({429, 503, 529})
"""What holds for every call with the same key, not for this one alone."""

_UNKNOWN = frozenset({408, 502, 504, 520, 524})
"""Somebody on the way gave up waiting; the provider may have made, and billed, the reply."""

_STATUS_OF = {
    "api_error": 500,
    "internal_error": 500,
    "internal_server_error": 500,
    "overloaded": 529,
    "overloaded_error": 529,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "server_error": 500,
    "timeout_error": 504,
    "too_many_requests": 429,
    "unavailable": 503,
}
"""The status of an error that came with status 200, by its word; any other is a refusal."""

_EXHAUSTED = frozenset(
    {"insufficient_quota", "billing_hard_limit_reached", "quota_exceeded", "billing_error"}
)
"""Words for a quota that waiting does not fill again."""

_TOO_LONG = re.compile(
    r"prompt is too long|context[ _]length|context[ _]window|maximum context|input is too long|too many tokens"
    r"|exceeds? (?:the )?(?:model's )?(?:maximum|limit) .{0,40}tokens",
    re.IGNORECASE,
)
"""What providers say of a conversation that does not fit into the model; there is no common word for it."""

_ADVICE = {
    401: "check the key",
    402: "check the account's billing",
    403: "check what the key may do",
    404: "check the model's id and the base address",
}

_KEY = re.compile(r"\b(?:sk|pk|key|gsk|xai|scripted)[-_][\w*.-]{6,}|Bearer\s+\S+", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")
_LONGEST_REASON = 600


@dataclass(frozen=True)
class Scene:
    """Which call an error is about: `endpoint`, `model`, and the `key` that must show nowhere."""

    endpoint: str
    model: str
    key: str

    def clean(self, text: str) -> str:
        """A provider's text, short, on one line, without anything that looks like a key."""
        text = redaction.redact(text, self.key)
        return cut(_KEY.sub("(key)", _CONTROL.sub(" ", text)).strip(), _LONGEST_REASON)


def status_error(
    scene: Scene, status: int, headers: Mapping[str, str], body: str, now: Callable[[], datetime]
) -> NodusError:
    """The error for an answer that is no success. `headers` must find names in lower case."""
    reason, words = _reason(body)
    said = f"{scene.endpoint} answered HTTP {status} to a call of {scene.model}: {scene.clean(reason)}"
    if words & _EXHAUSTED:
        return ModelRefusedRequest(f"{said} (the quota is used up: check the account's billing)", status)
    if status in _UNAVAILABLE:
        return ModelUnavailable(said, retry_after(headers, now), busy=status in _BUSY)
    if status in _UNKNOWN:
        return ModelOutcomeUnknown(said)
    if 300 <= status < 400:
        where = scene.clean(headers.get("location", "somewhere else"))
        advice = f"redirects are not followed: it points to {where}; set the base address to the final one"
        return ModelRefusedRequest(f"{said} ({advice})", status)
    if status == 413 or (status in (400, 422) and _TOO_LONG.search(" ".join((reason, *words)))):
        return ContextTooLong(f"{said} (the conversation is too long for this model)", status)
    advice = _ADVICE.get(status)
    return ModelRefusedRequest(f"{said} ({advice} of endpoint {scene.endpoint})" if advice else said, status)


def connection_error(scene: Scene, cause: BaseException | None, *, sent: bool) -> NodusError:
    """The error for a call without a whole answer. `sent`: the provider may have got the request."""
    if isinstance(cause, NeverSendable):
        return ModelRefusedRequest(
            f"{scene.endpoint} was not called for {scene.model}: {scene.clean(str(cause))}"
        )
    why = scene.clean(f"{type(cause).__name__}: {cause}" if cause else "no reason known")
    if sent:
        return ModelOutcomeUnknown(f"{scene.endpoint} gave no whole answer to a call of {scene.model}: {why}")
    return ModelUnavailable(f"{scene.endpoint} could not be reached for a call of {scene.model}: {why}")


def error_inside(
    scene: Scene, headers: Mapping[str, str], body: str, now: Callable[[], datetime]
) -> NodusError | None:
    """The error in the body of an answer with status 200: some gateways pass a provider's failure on like that,
    in place of the reply, or of its only choice."""
    data = _object(body)
    error = data.get("error") or _object_in(data.get("choices")).get("error")
    if isinstance(error, str) and error.strip():
        error = {"message": error}
    if not isinstance(error, Mapping):
        return None
    return status_error(scene, _status(error), headers, json.dumps({"error": error}), now)


def _object_in(choices: object) -> Mapping[str, Any]:
    first: object = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, Mapping) else {}


def _status(error: Mapping[str, Any]) -> int:
    """The HTTP status that an error's code or word stands for; 400 for one that says neither."""
    for name in ("status", "code"):
        given = error.get(name)
        number = int(given) if isinstance(given, str) and given.isdecimal() and len(given) == 3 else given
        if isinstance(number, int) and 400 <= number < 600:
            return number
    words = [word.lower() for word in (error.get("type"), error.get("code")) if isinstance(word, str)]
    return next((_STATUS_OF[word] for word in words if word in _STATUS_OF), 400)


def unreadable(scene: Scene, body: str, why: str) -> NodusError:
    """The error for a body of status 200 that is no reply: cut off, or no model at all at that address.

    Also an empty one may have been cut off: nothing in it says that no model was asked.
    """
    if not body.strip() or body.lstrip().startswith("{"):
        return ModelOutcomeUnknown(
            f"{scene.endpoint} answered a call of {scene.model} with a body that cannot be read: {scene.clean(why)}"
        )
    return ModelRefusedRequest(
        f"{scene.endpoint} answered a call of {scene.model} with something that is no model reply: "
        f"{scene.clean(body[:200])!r} (check the base address)",
        200,
    )


def retry_after(headers: Mapping[str, str], now: Callable[[], datetime]) -> float | None:
    """Seconds to wait, from `retry-after-ms` or `retry-after` (seconds or HTTP date); None when it says nothing.

    A date is counted from the answer's own `date`, so that clocks need not agree. At most `LONGEST_RETRY_AFTER_S`.
    """
    seconds = _number(headers.get("retry-after-ms"), 1000)
    seconds = _number(headers.get("retry-after"), 1) if seconds is None else seconds
    if seconds is None:
        until = _date(headers.get("retry-after"))
        if until is None:
            return None
        seconds = (until - (_date(headers.get("date")) or now())).total_seconds()
    return min(max(seconds, 0.0), LONGEST_RETRY_AFTER_S)


def _number(text: str | None, unit: int) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return None if math.isnan(value) else value / unit


def _date(text: str | None) -> datetime | None:
    try:
        found = parsedate_to_datetime(text or "")
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _reason(body: str) -> tuple[str, frozenset[str]]:
    """What an error body says, and the machine words in it."""
    data = _object(body)
    error = data.get("error", data)
    if not isinstance(error, Mapping):
        return str(error), frozenset()
    text = error.get("message") or error.get("detail")
    words = {word for word in (error.get("type"), error.get("code")) if isinstance(word, str)}
    return (text if isinstance(text, str) else body[:_LONGEST_REASON]) or "no reason given", frozenset(words)


def _object(body: str) -> Mapping[str, Any]:
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):  # an error page in HTML, for example: its text is the reason then
        return {}
    return data if isinstance(data, dict) else {}
