"""Texts are cut at the border of a character, and moments are text that sorts as they do."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nodus_core.kernel.text import PREVIEW_LIMIT, Inline, Stored, cut, preview
from nodus_core.kernel.times import moment, stamp

texts = st.text(st.characters(exclude_categories=["Cs"]))


@given(text=texts, limit=st.integers(0, 40))
def test_a_cut_is_the_longest_prefix_that_fits(text: str, limit: int) -> None:
    short = cut(text, limit)
    assert text.startswith(short)
    assert len(short.encode()) <= limit
    if short != text:
        assert len((short + text[len(short)]).encode()) > limit


@pytest.mark.parametrize(
    ("text", "limit", "short"),
    [("äöü", 3, "ä"), ("äöü", 4, "äö"), ("a😀b", 4, "a"), ("a😀b", 5, "a😀"), ("", 0, ""), ("abc", 0, "")],
)
def test_no_character_is_split(text: str, limit: int, short: str) -> None:
    assert cut(text, limit) == short


@pytest.mark.req("NOD-065")
def test_a_preview_needs_no_payload_store() -> None:
    long = "é" * PREVIEW_LIMIT
    assert len(preview(Inline(long)).encode()) == PREVIEW_LIMIT
    assert preview(Stored("0" * 64, 10_000, cut(long, PREVIEW_LIMIT))) == cut(long, PREVIEW_LIMIT)
    assert preview(Inline("short"), 2) == "sh"


moments = st.datetimes(datetime(1970, 1, 2), datetime(9000, 1, 1)).map(  # noqa: DTZ001 - made aware on the next line
    lambda value: value.replace(microsecond=value.microsecond // 1000 * 1000, tzinfo=UTC)
)


@given(first=moments, second=moments)
def test_stamps_sort_as_their_moments_do(first: datetime, second: datetime) -> None:
    assert moment(stamp(first)) == first
    assert (stamp(first) < stamp(second)) is (first < second)


def test_a_stamp_is_in_utc_whatever_the_zone() -> None:
    there = datetime(2030, 1, 1, 1, 30, tzinfo=timezone(timedelta(hours=2)))
    assert stamp(there) == "2029-12-31T23:30:00.000Z"
    with pytest.raises(ValueError, match="'yesterday'"):
        moment("yesterday")
