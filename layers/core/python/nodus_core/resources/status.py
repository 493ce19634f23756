"""Kubernetes `Status` bodies (NODQ-01)."""

from typing import Any

from nodus_core.kernel.errors import Refusal


def failure(code: int, refusal: Refusal) -> dict[str, Any]:
    """The body of a refusal. `code` is the HTTP status."""
    details: dict[str, Any] = {}
    if refusal.name is not None:
        details["name"] = refusal.name
    if refusal.kind is not None:
        details["kind"] = refusal.kind
    if refusal.retry_after is not None:
        details["retryAfterSeconds"] = refusal.retry_after
    if refusal.causes:
        details["causes"] = [
            {"reason": cause.reason, "message": cause.message, "field": cause.field}
            for cause in refusal.causes
        ]
    return {
        "apiVersion": "v1",
        "kind": "Status",
        "metadata": {},
        "status": "Failure",
        "reason": refusal.reason,
        "message": refusal.message,
        "code": code,
        **({"details": details} if details else {}),
    }


def success(kind: str, name: str, uid: str) -> dict[str, Any]:
    """The body after an object was removed."""
    return {
        "apiVersion": "v1",
        "kind": "Status",
        "metadata": {},
        "status": "Success",
        "code": 200,
        "details": {"name": name, "kind": kind, "uid": uid},
    }
