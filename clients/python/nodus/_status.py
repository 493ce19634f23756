"""The error that a Kubernetes ``Status`` means: its class follows from the reason, else from the HTTP code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from nodus.errors import (
    ApiError,
    BadRequestError,
    Cause,
    ConflictError,
    ForbiddenError,
    GoneError,
    InvalidError,
    MethodNotAllowedError,
    NotFoundError,
    PayloadTooLargeError,
    PreconditionFailedError,
    ServerError,
    ServiceUnavailableError,
    TooManyRequestsError,
    UnauthorizedError,
    UnsupportedMediaTypeError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_BY_CODE: dict[int, type[ApiError]] = {
    400: BadRequestError,
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    405: MethodNotAllowedError,
    409: ConflictError,
    410: GoneError,
    412: PreconditionFailedError,
    413: PayloadTooLargeError,
    415: UnsupportedMediaTypeError,
    422: InvalidError,
    429: TooManyRequestsError,
    500: ServerError,
    503: ServiceUnavailableError,
}


def _below(kind: type[ApiError]) -> Iterator[type[ApiError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from _below(child)


_BY_REASON: dict[str, type[ApiError]] = {kind.default_reason: kind for kind in _below(ApiError)}


def from_status(
    status: Mapping[str, Any], *, code: int, retry_after: float | None = None, request_id: str | None = None
) -> ApiError:
    """Rebuild the error from a Kubernetes ``Status`` (docs/protocols.md, section 1).

    Args:
        status: the decoded body; an empty mapping when the answer was no ``Status``.
        code: the HTTP status, which holds where the body says nothing.
        retry_after: seconds of the answer's ``Retry-After``, if it had one.
        request_id: the answer's, if it had one.
    """
    reason = str(status.get("reason") or "")
    kind = _BY_REASON.get(reason) or _BY_CODE.get(code) or (ServerError if code >= 500 else ApiError)
    details = _mapping(status.get("details"))
    return kind(
        str(status.get("message") or f"the server answered {code}"),
        code=code,
        reason=reason or None,
        causes=_causes(details.get("causes")),
        details=details,
        retry_after=retry_after,
        request_id=request_id,
    )


def _mapping(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _causes(value: Any) -> list[Cause]:
    """The causes, of whatever the server has put there."""
    causes = [_mapping(entry) for entry in cast("list[Any]", value)] if isinstance(value, list) else []
    return [
        Cause(*(str(cause.get(name) or "") for name in ("field", "message", "reason")))
        for cause in causes
        if cause
    ]
