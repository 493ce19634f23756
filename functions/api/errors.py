"""The one table from reasons to HTTP codes, and from every exception to a Kubernetes `Status` (NODQ-01).

docs/errors.md has a line for each reason.
"""

from dataclasses import dataclass, field
from typing import Any

from nodus_core.kernel.errors import ConditionFailed, Reason, Refusal, RetryableError
from nodus_core.resources.status import failure

CODES: dict[Reason, int] = {
    "BadRequest": 400,
    "Unauthorized": 401,
    "Forbidden": 403,
    "NotFound": 404,
    "MethodNotAllowed": 405,
    "AlreadyExists": 409,
    "Conflict": 409,
    "AgentStopped": 409,
    "AgentRunFinished": 409,
    "AnswerNotReady": 409,
    "SandboxNotRunning": 409,
    "MessageKeyConflict": 409,
    "IdempotencyKeyConflict": 409,
    "Expired": 410,
    "PayloadExpired": 410,
    "OutputGone": 410,
    "PreconditionFailed": 412,
    "PayloadTooLarge": 413,
    "UnsupportedMediaType": 415,
    "Invalid": 422,
    "ComingSoon": 422,
    "GPUUnavailable": 422,
    "NotAvailable": 422,
    "TooManyRequests": 429,
    "InternalError": 500,
    "BadGateway": 502,
    "ServiceUnavailable": 503,
    "GatewayTimeout": 504,
}


@dataclass(frozen=True)
class Failure:
    """What goes out: code, reason, body. `ours`: the fault is not the caller's, and is logged as an error."""

    code: int
    reason: str
    body: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict[str, str])
    ours: bool = False


def to_failure(error: Exception, request_id: str, *, repeatable: bool) -> Failure:
    """The answer to a call that raised.

    Args:
        error: what was raised.
        request_id: names the call in the logs; the only thing that a caller sees of a fault of ours.
        repeatable: making the call again does no more than making it once, so `Retry-After` may be said even
            where it is not known whether the first one was stored.
    """
    match error:
        case Refusal() if error.reason in CODES:
            return _failure(error, _headers(error))
        case RetryableError():
            wait = max(1, round(error.retry_after or 1))
            message = f"the service is busy; try again in {wait} s (request {request_id})"
            return _failure(
                Refusal("ServiceUnavailable", message), {"Retry-After": str(wait)} if repeatable else {}
            )
        case ConditionFailed():
            return _failure(Refusal("Conflict", "the object was changed by another call; read it again"), {})
        case _:
            message = f"the service failed; tell its operator request {request_id}"
            refusal = Refusal("InternalError", message)
            return Failure(500, refusal.reason, failure(500, refusal), ours=True)


def _headers(refusal: Refusal) -> dict[str, str]:
    headers = {"WWW-Authenticate": "Bearer"} if refusal.reason == "Unauthorized" else {}
    return headers if refusal.retry_after is None else {**headers, "Retry-After": str(refusal.retry_after)}


def _failure(refusal: Refusal, headers: dict[str, str]) -> Failure:
    code = CODES[refusal.reason]
    return Failure(code, refusal.reason, failure(code, refusal), headers)
