"""Errors of the core.

NodusError
├── TerminalError              doing the same again cannot help
│   ├── Refusal                a request is not accepted; nothing was stored
│   └── CorruptRow             a stored row cannot be read by this release
├── RetryableError             the same call may succeed later (`retry_after` seconds, if known)
│   └── StoreUnavailable       throttled, cut off, or a transaction lost too many races
└── ConditionFailed            a conditional write lost: the caller looks again and decides anew

Fenced                         BaseException: another worker owns the line now; stop at once, write nothing
"""

from dataclasses import dataclass
from typing import Literal, get_args

ApiReason = Literal[
    "BadRequest",
    "Unauthorized",
    "Forbidden",
    "NotFound",
    "MethodNotAllowed",
    "AlreadyExists",
    "Conflict",
    "AgentStopped",
    "AgentRunFinished",
    "AnswerNotReady",
    "SandboxNotRunning",
    "OutputGone",
    "MessageKeyConflict",
    "IdempotencyKeyConflict",
    "Expired",
    "PayloadExpired",
    "PreconditionFailed",
    "PayloadTooLarge",
    "UnsupportedMediaType",
    "Invalid",
    "ComingSoon",
    "GPUUnavailable",
    "NotAvailable",
    "TooManyRequests",
    "InternalError",
    "BadGateway",
    "ServiceUnavailable",
    "GatewayTimeout",
]
"""Every word in which the API refuses (NODQ-01); `functions/api/errors.py` has the HTTP code of each."""

Reason = ApiReason | Literal["Gone"]
"""Every word of refusal there is. What is `Gone` is a sandbox, and only its daemon is told so (`functions/link`)."""

REASONS: frozenset[str] = frozenset({*get_args(ApiReason), "Gone"})


class NodusError(Exception):
    """Root of all errors that the core raises on purpose."""


class TerminalError(NodusError):
    """Doing the same again cannot help."""


class RetryableError(NodusError):
    """The same call may succeed later."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class StoreUnavailable(RetryableError):
    """The store did not answer, throttled, or lost too many races in a row."""


class CorruptRow(TerminalError):
    """A stored row cannot be read: it names the row and what is wrong with it."""


MOST_CAUSES = 20
"""Fields that one refusal names: as many as a person reads, whatever the request's size."""


@dataclass(frozen=True)
class Cause:
    """One field of a refused request: `field` is its path (`spec.model.access`), `message` says what to do."""

    field: str
    message: str
    reason: str = "FieldValueInvalid"


class Refusal(TerminalError):
    """A request that is not accepted; nothing was stored.

    `reason` is the machine-readable word of the catalogue (NODQ-01), `causes` name the fields, the first `MOST_CAUSES`.
    `retry_after`: seconds after which the same request may be accepted.
    """

    def __init__(
        self,
        reason: Reason,
        message: str,
        *,
        causes: tuple[Cause, ...] = (),
        kind: str | None = None,
        name: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        if reason not in REASONS:
            raise ValueError(f"{reason!r} is no word of refusal")
        super().__init__(message)
        self.reason: Reason = reason
        self.message = message
        self.causes = causes[:MOST_CAUSES]
        self.kind = kind
        self.name = name
        self.retry_after = retry_after


class ConditionFailed(NodusError):
    """A conditional write lost. `current` holds the rows as they are, by position of the failed operation."""

    def __init__(self, commit: str, current: dict[int, dict[str, object]]) -> None:
        super().__init__(f"commit {commit!r} lost: conditions {sorted(current)} do not hold")
        self.commit = commit
        self.current = current


class Fenced(BaseException):
    """The line has another owner. Not an `Exception`, so that no tool's handler can swallow it."""
