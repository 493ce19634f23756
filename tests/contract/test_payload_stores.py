"""Payload stores: the double and S3 (as MiniStack has it) keep texts by content."""

import urllib.request
from collections.abc import Callable
from typing import Any

import pytest
from nodus_core.aws.s3_payloads import S3Payloads
from nodus_core.journal.payloads import Payloads, Scope
from nodus_core.kernel.errors import CorruptRow, StoreUnavailable, TerminalError
from nodus_core.kernel.ids import digest
from nodus_core.kernel.text import INLINE_LIMIT, Inline, Stored, Text
from nodus_core.testing.memory_payloads import MemoryPayloads

SCOPE = Scope("acme", "run-1")
LONG = "é" * INLINE_LIMIT
BUCKET = "payloads"


@pytest.fixture
def s3(s3_with: Callable[[str], Any]) -> Any:
    return s3_with(BUCKET)


@pytest.fixture(params=["memory", "ministack"])
def payloads(request: pytest.FixtureRequest) -> Payloads:
    if request.param == "memory":
        return MemoryPayloads()
    made = S3Payloads(request.getfixturevalue("s3"), BUCKET)
    made.delete_scope(SCOPE)
    return made


def _spoil(payloads: Payloads, scope: Scope, stored: Stored, text: str | None) -> None:
    """Puts another text in the place of a stored one, or none."""
    if isinstance(payloads, MemoryPayloads):
        payloads.objects.pop((scope, stored.sha256))
        if text is not None:
            payloads.objects[scope, stored.sha256] = text
        return
    assert isinstance(payloads, S3Payloads)
    key = f"{scope.org}/{scope.id}/{stored.sha256}"
    payloads._client.delete_object(Bucket=BUCKET, Key=key)
    if text is not None:
        payloads._client.put_object(Bucket=BUCKET, Key=key, Body=text.encode())


@pytest.mark.parametrize("text", ["", "short", "x" * INLINE_LIMIT, "é" * (INLINE_LIMIT // 2)], ids=len)
def test_a_short_text_stands_in_its_row(payloads: Payloads, text: str) -> None:
    kept = payloads.put(SCOPE, text)

    assert kept == Inline(text)
    assert payloads.get(SCOPE, kept) == text


@pytest.mark.req("FLD-06")
@pytest.mark.parametrize(
    ("text", "head"),
    [
        ("x" * (INLINE_LIMIT + 1), "x" * INLINE_LIMIT),
        ("x" + "é" * INLINE_LIMIT, "x" + "é" * (INLINE_LIMIT // 2 - 1)),
        ("🎈" * 2000, "🎈" * (INLINE_LIMIT // 4)),
        ("a\x00b\r\n" * 1000, ("a\x00b\r\n" * 1000)[:INLINE_LIMIT]),
    ],
    ids=["one byte too long", "cut before a character", "four bytes each", "control characters"],
)
def test_a_long_text_is_named_by_its_hash(payloads: Payloads, text: str, head: str) -> None:
    kept = payloads.put(SCOPE, text)

    assert kept == Stored(digest(text), len(text.encode()), head)
    assert payloads.get(SCOPE, kept) == text
    assert payloads.put(SCOPE, text) == kept


def test_many_texts_come_in_order(payloads: Payloads) -> None:
    texts = [LONG + str(n) if n % 3 else str(n) for n in range(20)] + [LONG + "1"]
    kept = [payloads.put(SCOPE, text) for text in texts]

    assert payloads.get_many(SCOPE, kept) == texts
    assert payloads.get_many(SCOPE, []) == []
    assert payloads.get_many(SCOPE, kept[1:2]) == texts[1:2]


def test_a_text_without_its_head_is_stored_once_and_gets_it_when_it_is_shown(payloads: Payloads) -> None:
    bare = payloads.put(SCOPE, "x" + LONG, head=False)
    whole = payloads.put(SCOPE, LONG)

    assert bare == Stored(digest("x" + LONG), len(LONG.encode()) + 1, "")
    assert payloads.get(SCOPE, bare) == "x" + LONG
    assert payloads.put(SCOPE, "short", head=False) == Inline("short")
    shown = payloads.with_heads(SCOPE, [bare, Inline("short"), whole, bare])
    assert shown == [payloads.put(SCOPE, "x" + LONG), Inline("short"), whole, payloads.put(SCOPE, "x" + LONG)]
    assert payloads.with_heads(SCOPE, []) == []


def test_the_head_of_a_text_that_is_gone_is_an_error_that_names_it(payloads: Payloads) -> None:
    bare = payloads.put(SCOPE, LONG, head=False)
    assert isinstance(bare, Stored)
    _spoil(payloads, SCOPE, bare, None)

    with pytest.raises(CorruptRow, match=f"acme/run-1/{bare.sha256}.*is gone"):
        payloads.with_heads(SCOPE, [bare])


@pytest.mark.parametrize("read", ["get", "get_many"])
@pytest.mark.parametrize(("spoilt", "message"), [(None, "is gone"), (LONG + "?", "hash"), ("", "hash")])
def test_a_spoilt_text_is_an_error_that_names_it(
    payloads: Payloads, read: str, spoilt: str | None, message: str
) -> None:
    kept, other = payloads.put(SCOPE, LONG), payloads.put(SCOPE, LONG + "other")
    assert isinstance(kept, Stored)
    _spoil(payloads, SCOPE, kept, spoilt)

    with pytest.raises(CorruptRow, match=f"acme/run-1/{kept.sha256}.*{message}"):
        _read(payloads, read, [other, kept])


def test_a_scope_cannot_be_read_from_another(payloads: Payloads) -> None:
    kept = payloads.put(SCOPE, LONG)

    for other in (Scope("acme", "run-2"), Scope("other", "run-1")):
        with pytest.raises(CorruptRow):
            payloads.get(other, kept)


def test_a_scope_is_deleted_whole_and_alone(payloads: Payloads) -> None:
    neighbours = [Scope("acme", "run-10"), Scope("acme", "run"), Scope("acm", "run-1")]
    mine = [payloads.put(SCOPE, LONG + str(n)) for n in range(3)]
    theirs = [payloads.put(scope, LONG) for scope in neighbours]

    payloads.delete_scope(SCOPE)
    payloads.delete_scope(SCOPE)

    for kept in mine:
        with pytest.raises(CorruptRow):
            payloads.get(SCOPE, kept)
    assert [payloads.get(scope, kept) for scope, kept in zip(neighbours, theirs, strict=True)] == [LONG] * 3


@pytest.mark.parametrize(
    ("org", "owner"), [("", "r"), ("o", ""), ("o/p", "r"), ("o", "../r"), ("..", "r"), ("o", ".")]
)
def test_an_owner_cannot_reach_out_of_its_place(org: str, owner: str) -> None:
    with pytest.raises(ValueError, match="cannot own payloads"):
        Scope(org, owner)


def test_what_is_no_unicode_is_refused(payloads: Payloads) -> None:
    with pytest.raises(ValueError, match="surrogate"):
        payloads.put(SCOPE, "\ud800" * INLINE_LIMIT)


@pytest.mark.req("NOD-065")
def test_a_presigned_address_needs_no_key(s3: Any) -> None:
    payloads = S3Payloads(s3, BUCKET)
    kept = payloads.put(SCOPE, LONG)
    assert isinstance(kept, Stored)

    with urllib.request.urlopen(payloads.presign(SCOPE, kept), timeout=10) as answer:
        assert answer.read().decode() == LONG
        assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"


def test_more_texts_than_one_listing_are_deleted(s3: Any) -> None:
    """A listing of S3 holds at most 1000 keys."""
    payloads, scope = S3Payloads(_ShortListings(s3), BUCKET), Scope("acme", "many")
    kept = [payloads.put(scope, LONG + str(n)) for n in range(5)]

    payloads.delete_scope(scope)

    for text in kept:
        with pytest.raises(CorruptRow):
            payloads.get(scope, text)


def test_a_bucket_that_is_missing_is_a_terminal_error(s3: Any) -> None:
    with pytest.raises(TerminalError, match=r"writing payload acme/run-1/.*NoSuchBucket"):
        S3Payloads(s3, "missing").put(SCOPE, LONG)


def test_texts_that_s3_did_not_delete_are_reported(s3: Any) -> None:
    class Stubborn:
        def __getattr__(self, name: str) -> Any:
            return getattr(s3, name)

        def delete_objects(self, **_: Any) -> dict[str, Any]:
            return {"Errors": [{"Key": "k", "Code": "InternalError"}]}

    payloads = S3Payloads(Stubborn(), BUCKET)
    payloads.put(SCOPE, LONG)

    with pytest.raises(StoreUnavailable, match="InternalError"):
        payloads.delete_scope(SCOPE)


class _ShortListings:
    """S3 whose listings hold two keys each."""

    def __init__(self, s3: Any) -> None:
        self._s3 = s3

    def __getattr__(self, name: str) -> Any:
        return getattr(self._s3, name)

    def get_paginator(self, name: str) -> Any:
        paginator = self._s3.get_paginator(name)

        class Short:
            def paginate(self, **arguments: Any) -> Any:
                return paginator.paginate(**arguments, PaginationConfig={"PageSize": 2})

        return Short()


def _read(payloads: Payloads, how: str, texts: list[Text]) -> list[str]:
    if how == "get":
        return [payloads.get(SCOPE, text) for text in texts]
    return payloads.get_many(SCOPE, texts)
