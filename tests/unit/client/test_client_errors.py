"""The error tree, and how it is rebuilt from a Status."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest
from nodus import errors
from nodus._status import from_status

from functions.api.errors import CODES


def drawn() -> list[tuple[int, str]]:
    """(depth, name) of each class in the picture."""
    lines = (errors.__doc__ or "").splitlines()
    found = [re.match(r"    ([│├└─ ]*)(\w+Error)\b", line) for line in lines]
    return [(len(match[1]) // 4, match[2]) for match in found if match]


def defined(base: type[Exception], depth: int = 0) -> list[tuple[int, str]]:
    below = [
        found
        for child in base.__subclasses__()
        if child.__module__ == errors.__name__
        for found in defined(child, depth + 1)
    ]
    return [(depth, base.__name__), *below]


def test_the_picture_shows_the_tree() -> None:
    assert drawn() == defined(errors.NodusError)


@pytest.mark.req("NODQ-01")
@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (400, "BadRequest", errors.BadRequestError),
        (401, "Unauthorized", errors.UnauthorizedError),
        (403, "Forbidden", errors.ForbiddenError),
        (404, "NotFound", errors.NotFoundError),
        (409, "AlreadyExists", errors.AlreadyExistsError),
        (409, "Conflict", errors.ConflictError),
        (409, "AgentStopped", errors.AgentStoppedError),
        (409, "AgentRunFinished", errors.AgentRunFinishedError),
        (409, "AnswerNotReady", errors.AnswerNotReadyError),
        (412, "PreconditionFailed", errors.PreconditionFailedError),
        (409, "SandboxNotRunning", errors.SandboxNotRunningError),
        (410, "OutputGone", errors.OutputGoneError),
        (410, "PayloadExpired", errors.PayloadExpiredError),
        (413, "PayloadTooLarge", errors.PayloadTooLargeError),
        (415, "UnsupportedMediaType", errors.UnsupportedMediaTypeError),
        (422, "Invalid", errors.InvalidError),
        (429, "TooManyRequests", errors.TooManyRequestsError),
        (500, "InternalError", errors.ServerError),
        (503, "ServiceUnavailable", errors.ServiceUnavailableError),
        (409, "GroupSealed", errors.ConflictError),
        (410, "Gone", errors.GoneError),
        (410, "Expired", errors.ExpiredError),
        (422, "ComingSoon", errors.ComingSoonError),
        (422, "NotAvailable", errors.NotAvailableError),
        (422, "SomeLaterReason", errors.InvalidError),
        (502, "", errors.ServerError),
        (418, "", errors.ApiError),
    ],
)
def test_the_class_follows_from_the_reason_else_from_the_code(
    code: int, reason: str, kind: type[errors.ApiError]
) -> None:
    error = from_status({"reason": reason, "message": "m"}, code=code)
    assert type(error) is kind
    assert error.reason == (reason or kind.default_reason)


@pytest.mark.req("NODQ-01")
def test_every_reason_of_the_server_has_a_class_of_its_own() -> None:
    """A new reason in `functions/api/errors.py` needs a class in `nodus.errors`, and a line in its picture."""
    classes = {reason: type(from_status({"reason": reason}, code=code)) for reason, code in CODES.items()}
    assert {reason: kind.default_reason for reason, kind in classes.items()} == {
        reason: reason for reason in CODES
    }


@pytest.mark.parametrize(
    "body",
    [
        {"reason": ["x"], "message": {"a": 1}, "details": "none"},
        {"details": {"causes": "many"}},
        {"details": {"causes": [None, 1, "x", [], {"field": 7, "message": None}]}},
        {"reason": 7, "details": {"causes": {"field": "x"}}},
    ],
)
def test_a_status_of_the_wrong_shape_is_an_error_all_the_same(body: dict[str, Any]) -> None:
    error = from_status(body, code=409)
    assert isinstance(error, errors.ConflictError)
    assert all(isinstance(cause, errors.Cause) for cause in error.causes)
    assert isinstance(error.message, str)
    assert isinstance(error.reason, str)


def test_causes_name_the_fields() -> None:
    status = {
        "reason": "Invalid",
        "details": {"causes": [{"field": "spec.x", "message": "unknown", "reason": "R"}]},
    }
    assert from_status(status, code=422).causes == (errors.Cause("spec.x", "unknown", "R"),)


def test_every_class_says_what_it_means() -> None:
    classes = [
        kind for _, kind in inspect.getmembers(errors, inspect.isclass) if kind.__module__ == errors.__name__
    ]
    assert all(inspect.getdoc(kind) for kind in classes)
