"""Every error that the client raises.

    NodusError                        .reason, .message
    ├── ConfigError                   no server, no key, or a configuration file that cannot be read
    ├── ManifestError                 a text that is no manifest: .source, .line, .field
    ├── ServerUnreachableError        nothing was sent: the server cannot be reached
    ├── OutcomeUnknownError           sent, but no answer came: it may or may not have been done; .run
    ├── UnexpectedAnswerError         what answered is not a Nodus server, or not one that this client understands
    ├── WaitTimeoutError              (also TimeoutError) the wait is over, the object goes on
    ├── ConditionMissedError          the object has ended, and never will be as it was waited for: .object
    ├── RunError                      .run, .status
    │   ├── RunFailedError            the run ended Failed or Cancelled
    │   └── RunBlockedError           the run waits for a person
    └── ApiError                      the server refused: .code, .causes, .retry_after, .request_id
        ├── BadRequestError           400 BadRequest
        ├── UnauthorizedError         401 Unauthorized
        ├── ForbiddenError            403 Forbidden
        ├── NotFoundError             404 NotFound
        ├── MethodNotAllowedError     405 MethodNotAllowed
        ├── ConflictError             409 Conflict
        │   ├── AlreadyExistsError    409 AlreadyExists
        │   ├── AgentStoppedError     409 AgentStopped
        │   ├── AgentRunFinishedError 409 AgentRunFinished
        │   ├── AnswerNotReadyError   409 AnswerNotReady
        │   ├── SandboxNotRunningError 409 SandboxNotRunning
        │   ├── MessageKeyConflictError 409 MessageKeyConflict
        │   └── IdempotencyKeyConflictError 409 IdempotencyKeyConflict
        ├── GoneError                 410 Gone
        │   ├── ExpiredError          410 Expired
        │   ├── OutputGoneError       410 OutputGone
        │   └── PayloadExpiredError   410 PayloadExpired
        ├── PreconditionFailedError   412 PreconditionFailed
        ├── PayloadTooLargeError      413 PayloadTooLarge
        ├── UnsupportedMediaTypeError 415 UnsupportedMediaType
        ├── InvalidError              422 Invalid
        │   ├── ComingSoonError       422 ComingSoon
        │   ├── GPUUnavailableError   422 GPUUnavailable
        │   └── NotAvailableError     422 NotAvailable
        ├── TooManyRequestsError      429 TooManyRequests
        ├── ServerError               500 InternalError
        │   ├── BadGatewayError       502 BadGateway
        │   └── GatewayTimeoutError   504 GatewayTimeout
        └── ServiceUnavailableError   503 ServiceUnavailable

The class of an ``ApiError`` follows from the ``reason`` of the server's ``Status`` (NODQ-01); a reason that
this client does not know yet falls back to the class of its HTTP code, and keeps the word in ``reason``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from nodus._record import Record


class NodusError(Exception):
    """Base of everything that the client raises on purpose.

    ``reason`` is a word for programs, ``message`` a text for people.
    """

    default_reason: ClassVar[str] = "Error"

    def __init__(self, message: str, *, reason: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.reason = reason or self.default_reason

    def __str__(self) -> str:
        return self.message


class ConfigError(NodusError):
    """The client does not know where to send a call, or with which key."""

    default_reason = "NotConfigured"


class ManifestError(NodusError):
    """A text cannot be read as manifests; nothing was sent (FLD-17).

    ``source`` is the file's name, ``line`` counts from 1 (``None`` where it is not known), ``field`` is the
    dotted path of the field meant, or empty.
    """

    default_reason = "InvalidManifest"

    def __init__(self, problem: str, *, source: str, line: int | None = None, field: str = "") -> None:
        place = f"{source} line {line}" if line else source
        super().__init__(f"{place}: {field}: {problem}" if field else f"{place}: {problem}")
        self.problem = problem
        self.source = source
        self.line = line
        self.field = field


class ServerUnreachableError(NodusError):
    """No connection to the server; the call was not sent and may be made again."""

    default_reason = "ServerUnreachable"


class OutcomeUnknownError(NodusError):
    """The call was sent and no answer came: look at the object before you call again.

    ``run`` is the handle (``AgentRun`` or ``AsyncAgentRun``) of the run that ``submit`` may have started (``None``: another call), so that it can be
    looked at although its name was never returned.
    """

    default_reason = "OutcomeUnknown"

    def __init__(self, message: str, *, run: Any = None) -> None:
        super().__init__(message)
        self.run = run


class UnexpectedAnswerError(NodusError):
    """What answered is not a Nodus server (a proxy, a login page), or not one that this client understands."""

    default_reason = "UnexpectedAnswer"


class WaitTimeoutError(NodusError, TimeoutError):
    """A wait reached its time; what was waited for goes on."""

    default_reason = "Timeout"


class ConditionMissedError(NodusError):
    """The object has ended, so a wait for something else can never be met (NODQ-73). ``object`` is what it is now."""

    default_reason = "ConditionMissed"

    def __init__(self, message: str, *, object: Record) -> None:
        super().__init__(message)
        self.object = object


class RunError(NodusError):
    """A run gave no answer. ``run`` is its handle (``AgentRun`` or ``AsyncAgentRun``), ``status`` what it showed last."""

    default_reason = "RunFailed"

    def __init__(self, message: str, *, run: Any, status: Record) -> None:
        super().__init__(message, reason=str(status.get("reason") or self.default_reason))
        self.run = run
        self.status = status


class RunFailedError(RunError):
    """The run ended ``Failed`` or ``Cancelled``; ``reason`` says why (NOD-033, NOD-511)."""


class RunBlockedError(RunError):
    """The run does not go on until somebody acts, for example ``NeedsResolution`` (NOD-034)."""

    default_reason = "RunBlocked"


class Cause(NamedTuple):
    """One field that the server refused: its dotted path and what is wrong with it."""

    field: str
    message: str
    reason: str = ""


class ApiError(NodusError):
    """The server refused a call.

    ``code`` is the HTTP status, ``causes`` names the fields, ``retry_after`` the seconds after which the
    server allows another try (``None``: it did not say), ``details`` the object meant (``kind``, ``name``),
    ``request_id`` what an operator finds the call by in the server's logs (``None``: it did not say).
    """

    default_reason = "Refused"

    def __init__(
        self,
        message: str,
        *,
        code: int,
        reason: str | None = None,
        causes: Sequence[Cause] = (),
        details: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(message, reason=reason)
        self.request_id = request_id
        self.code = code
        self.causes = tuple(causes)
        self.details: dict[str, Any] = dict(details or {})
        self.retry_after = retry_after


class BadRequestError(ApiError):
    """The call itself is malformed."""

    default_reason = "BadRequest"


class UnauthorizedError(ApiError):
    """The key is missing, wrong or withdrawn."""

    default_reason = "Unauthorized"


class ForbiddenError(ApiError):
    """The key may not do this in this organization or project."""

    default_reason = "Forbidden"


class NotFoundError(ApiError):
    """There is no such object (or it belongs to somebody else)."""

    default_reason = "NotFound"


class MethodNotAllowedError(ApiError):
    """The path is there and does not take this method."""

    default_reason = "MethodNotAllowed"


class ConflictError(ApiError):
    """The object is in a state that does not allow the call."""

    default_reason = "Conflict"


class AlreadyExistsError(ConflictError):
    """An object of that name exists."""

    default_reason = "AlreadyExists"


class AgentStoppedError(ConflictError):
    """The agent has ``spec.state: Stopped`` and takes no runs (NOD-038)."""

    default_reason = "AgentStopped"


class AgentRunFinishedError(ConflictError):
    """The run has ended and takes nothing more (NOD-182)."""

    default_reason = "AgentRunFinished"


class AnswerNotReadyError(ConflictError):
    """The run has no answer yet (NOD-067)."""

    default_reason = "AnswerNotReady"


class SandboxNotRunningError(ConflictError):
    """The sandbox has no machine that runs, so it takes no command (NOD-438)."""

    default_reason = "SandboxNotRunning"


class MessageKeyConflictError(ConflictError):
    """The message key was used for another text; nothing was delivered (NODQ-17)."""

    default_reason = "MessageKeyConflict"


class IdempotencyKeyConflictError(ConflictError):
    """The idempotency key was used for another request; nothing was done (FLD-16)."""

    default_reason = "IdempotencyKeyConflict"


class GoneError(ApiError):
    """What was asked for was there and is no more."""

    default_reason = "Gone"


class ExpiredError(GoneError):
    """A position in a list or a watch is too old: list again (``watch`` does so itself)."""

    default_reason = "Expired"


class OutputGoneError(GoneError):
    """The command's machine is gone, and its output with it (NOD-440)."""

    default_reason = "OutputGone"


class PayloadExpiredError(GoneError):
    """The run's texts were kept for 30 days after its end and are gone (NOD-077)."""

    default_reason = "PayloadExpired"


class PreconditionFailedError(ApiError):
    """A file is not the version that was meant, or is there where none must be; nothing was changed."""

    default_reason = "PreconditionFailed"


class PayloadTooLargeError(ApiError):
    """The request is larger than the server takes."""

    default_reason = "PayloadTooLarge"


class UnsupportedMediaTypeError(ApiError):
    """The server does not take this content type."""

    default_reason = "UnsupportedMediaType"


class InvalidError(ApiError):
    """Fields of the object are not valid; ``causes`` names each."""

    default_reason = "Invalid"


class ComingSoonError(InvalidError):
    """The server knows the setting, and does not offer it yet."""

    default_reason = "ComingSoon"


class GPUUnavailableError(InvalidError):
    """A Sandbox asks for a GPU, and there is none (NODQ-63)."""

    default_reason = "GPUUnavailable"


class NotAvailableError(InvalidError):
    """This installation cannot do that: a kind or a setting that nothing acts on yet.

    Also raised, with the same ``code``, for an object that was stored and whose condition ``Ready`` says so.
    """

    default_reason = "NotAvailable"


class TooManyRequestsError(ApiError):
    """Too many calls; ``retry_after`` says when to call again."""

    default_reason = "TooManyRequests"


class ServerError(ApiError):
    """The server failed."""

    default_reason = "InternalError"


class BadGatewayError(ServerError):
    """At the address of a preview: the service in the sandbox gives no answer that can be passed."""

    default_reason = "BadGateway"


class GatewayTimeoutError(ServerError):
    """At the address of a preview: the service in the sandbox has not answered in time."""

    default_reason = "GatewayTimeout"


class ServiceUnavailableError(ApiError):
    """The server cannot answer at the moment."""

    default_reason = "ServiceUnavailable"
