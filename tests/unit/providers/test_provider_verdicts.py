"""What a failed call means, and that no key gets into its message."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nodus_core.inference import ModelOutcomeUnknown, ModelRefusedRequest, ModelUnavailable
from nodus_core.inference.errors import LONGEST_RETRY_AFTER_S
from nodus_core.providers.verdicts import Scene, error_inside, retry_after, status_error, unreadable

KEY = "very-own-key-0123456789"
SCENE = Scene("anthropic", "m-1", KEY)
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


def now() -> datetime:
    return NOON


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (429, ModelUnavailable),
        (500, ModelUnavailable),
        (503, ModelUnavailable),
        (529, ModelUnavailable),
        (521, ModelUnavailable),
        (520, ModelOutcomeUnknown),
        (408, ModelOutcomeUnknown),
        (502, ModelOutcomeUnknown),
        (504, ModelOutcomeUnknown),
        (301, ModelRefusedRequest),
        (400, ModelRefusedRequest),
        (401, ModelRefusedRequest),
        (418, ModelRefusedRequest),
        (501, ModelRefusedRequest),
    ],
)
def test_each_status_has_its_meaning(status: int, kind: type[Exception]) -> None:
    error = status_error(SCENE, status, {}, '{"error": {"message": "because"}}', now)
    assert type(error) is kind
    assert "because" in str(error)
    assert "anthropic" in str(error)
    assert "m-1" in str(error)


@pytest.mark.req("FLD-04")
def test_only_what_holds_for_every_call_with_the_key_lets_all_wait() -> None:
    busy = [
        status for status in range(400, 600) if getattr(status_error(SCENE, status, {}, "", now), "busy", 0)
    ]
    assert busy == [429, 503, 529]


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7),
        ({"retry-after": "0"}, 0),
        ({"retry-after": "-1"}, 0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, LONGEST_RETRY_AFTER_S),
        ({"retry-after": "later"}, None),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "Tue, 01 Jan 2030 12:00:09 GMT"}, 9),
        ({"retry-after": "Tue, 01 Jan 2030 12:00:09 -0000"}, 9),
        ({"retry-after": "Tue, 01 Jan 2030 11:00:00 GMT"}, 0),
        ({"retry-after": "Tue, 01 Jan 2030 12:00:09 GMT", "date": "Tue, 01 Jan 2030 12:00:05 GMT"}, 4),
        ({"retry-after": "Tue, 99 Jan 2030 12:00:09 GMT"}, None),
    ],
)
def test_waiting_times_are_seconds_or_dates(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, now) == seconds


@given(st.text(max_size=40))
def test_no_waiting_time_crashes_or_is_absurd(text: str) -> None:
    seconds = retry_after({"retry-after": text}, now)
    assert seconds is None or 0 <= seconds <= LONGEST_RETRY_AFTER_S


@pytest.mark.parametrize(
    "reason",
    [f"bad key {KEY}", "Incorrect API key: sk-abcd****wxyz.", "Authorization: Bearer abc.def", f"{KEY}{KEY}"],
)
def test_a_key_in_a_provider_s_reason_is_not_repeated(reason: str) -> None:
    body = f'{{"error": {{"message": "{reason}"}}}}'
    told = str(status_error(SCENE, 401, {}, body, now))
    for secret in (KEY, "sk-abcd", "abc.def"):
        assert secret not in told


@given(st.text(max_size=200))
def test_whatever_stands_in_an_error_body_becomes_one_short_line(body: str) -> None:
    told = str(status_error(SCENE, 400, {"location": body}, body * 20, now))
    assert len(told.encode(errors="replace")) < 1000
    assert told.isprintable() or "\n" not in told


@pytest.mark.parametrize(
    "body", ["[1]", "null", '"x"', '{"error": "plain"}', '{"detail": "fastapi"}', "{" * 9999]
)
def test_odd_error_bodies_are_told_too(body: str) -> None:
    assert isinstance(status_error(SCENE, 400, {}, body, now), ModelRefusedRequest)


@pytest.mark.req("FLD-08")
@pytest.mark.parametrize("status", [200, 400, 401, 404, 413, 529])
def test_half_a_character_in_an_error_is_told_as_one_that_is_missing(status: int) -> None:
    """JSON can write it and nothing can store it: the refusal must not be lost over its own text."""
    body = '{"error": {"type": "invalid_request_error", "message": "half \\ud800 of it"}}'
    found = (
        error_inside(SCENE, {}, body, now) if status == 200 else status_error(SCENE, status, {}, body, now)
    )
    assert "half ? of it" in str(found)
    str(found).encode()


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ('{"code": 503}', ModelUnavailable),
        ('{"code": "429"}', ModelUnavailable),
        ('{"type": "overloaded_error", "message": "busy"}', ModelUnavailable),
        ('{"code": "rate_limit_exceeded"}', ModelUnavailable),
        ('{"type": "timeout_error"}', ModelOutcomeUnknown),
        ('{"code": 429, "type": "insufficient_quota"}', ModelRefusedRequest),
        ('{"code": 99999999999999999999}', ModelRefusedRequest),
        ('"no such model"', ModelRefusedRequest),
    ],
)
def test_an_error_inside_a_success_is_what_its_code_or_word_says(error: str, kind: type[Exception]) -> None:
    for body in (f'{{"error": {error}}}', f'{{"choices": [{{"error": {error}}}]}}'):
        assert type(error_inside(SCENE, {}, body, now)) is kind


def test_an_error_inside_a_success_may_name_a_waiting_time() -> None:
    error = error_inside(SCENE, {"retry-after": "7"}, '{"error": {"code": 429}}', now)
    assert isinstance(error, ModelUnavailable)
    assert error.retry_after == 7


@pytest.mark.parametrize(
    "body", ['{"error": null}', '{"error": ""}', '{"error": 5}', "[]", '{"choices": [5]}']
)
def test_a_body_without_an_error_holds_none(body: str) -> None:
    assert error_inside(SCENE, {}, body, now) is None


def test_a_body_that_begins_like_json_may_have_been_cut() -> None:
    assert isinstance(unreadable(SCENE, ' {"content": [', "cut"), ModelOutcomeUnknown)
    assert isinstance(unreadable(SCENE, " \n", "nothing"), ModelOutcomeUnknown)
    assert isinstance(unreadable(SCENE, "<html>", "no JSON"), ModelRefusedRequest)
