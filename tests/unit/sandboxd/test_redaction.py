"""What the daemon takes out of outputs: the values of secrets, however they are cut into pieces and written (FLD-14)."""

import base64
import hashlib
import itertools
import json
import urllib.parse

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sandboxd.redaction import Redactor, Stream

VALUE = "plum-9f31-KITE-77aa"


def streamed(redactor: Redactor, pieces: list[bytes]) -> bytes:
    stream = Stream(redactor)
    return b"".join([*map(stream.feed, pieces), stream.rest()])


@pytest.mark.req("FLD-14")
@pytest.mark.parametrize(
    "written",
    [
        VALUE,
        json.dumps(f"{VALUE}"),
        urllib.parse.quote(VALUE),
        "".join(f"%{byte:02X}" for byte in VALUE.encode()),
        "".join(f"\\u{ord(char):04X}" for char in VALUE),
        f"Authorization: Bearer {VALUE}\n",
    ],
)
def test_a_value_is_found_in_every_spelling(written: str) -> None:
    shown = Redactor([VALUE]).text(written)
    assert "(secret)" in shown
    assert "KITE" not in shown


@pytest.mark.req("FLD-14")
def test_each_line_of_a_value_counts_and_odd_characters_do() -> None:
    key = '-----BEGIN KEY-----\nab+c/d"e\\f$%^\n\tü€😀-long-enough\nshort\n'
    redactor = Redactor([key])
    for text in (key, json.dumps(key), json.dumps(key, ensure_ascii=False), urllib.parse.quote_plus(key)):
        shown = redactor.text(text)
        assert "BEGIN" not in shown
        assert "enough" not in shown
    assert redactor.text('echo ab+c/d"e\\f$%^ and short') == "echo (secret) and short"
    assert Redactor(["1234567"]).text("1234567") == "1234567"
    long = "x" * 5000 + '"' + "y" * 5000
    assert Redactor([long]).text(f"<{long}> {json.dumps(long)}") == '<(secret)> "(secret)"'


@pytest.mark.req("FLD-14")
def test_a_bundle_of_a_thousand_lines_is_taken_out_however_it_is_cut() -> None:
    lines = [hashlib.sha256(f"line {number}".encode()).hexdigest() for number in range(1000)]
    redactor = Redactor(["\n".join(lines)])
    told = b"".join(b"%d %s\n" % (number, line.encode()) for number, line in enumerate(reversed(lines)))
    pieces = [told[at : at + 1000] for at in range(0, len(told), 1000)]
    assert streamed(redactor, pieces) == b"".join(b"%d (secret)\n" % number for number in range(1000))


@pytest.mark.req("FLD-14")
@pytest.mark.parametrize("value", ["BEGINNING" + "xyz" * 30_000, "a" * 4_000 + "b"], ids=["long", "repeats"])
def test_what_only_begins_like_a_value_again_and_again_is_shown(value: str) -> None:
    """A long value is compared, and not walked through, at each of the places where it might begin."""
    told = value[:9] * 25_000 + "."
    assert Redactor([value]).text(told) == told
    assert Redactor([value]).text(told + value) == told + "(secret)"


def test_what_a_command_makes_of_a_value_is_not_known() -> None:
    encoded = base64.b64encode(VALUE.encode()).decode()
    assert Redactor([VALUE]).text(encoded) == encoded


@pytest.mark.req("FLD-14")
@given(
    value=st.text(min_size=8, max_size=20).filter(lambda text: len(text.splitlines()) <= 1),
    before=st.binary(max_size=30),
    after=st.binary(max_size=30),
    cuts=st.lists(st.integers(0, 200), max_size=8),
    spelling=st.sampled_from(["plain", "json", "url"]),
)
def test_a_stream_in_pieces_shows_what_the_whole_would(
    value: str, before: bytes, after: bytes, cuts: list[int], spelling: str
) -> None:
    written = {"plain": value, "json": json.dumps(value)[1:-1], "url": urllib.parse.quote(value, safe="")}
    data = before + written[spelling].encode() + after
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    pieces = [data[start:end] for start, end in itertools.pairwise(edges)]
    redactor = Redactor([value])
    shown = streamed(redactor, pieces)
    assert shown == redactor.whole(data)
    assert b"(secret)" in shown


@pytest.mark.req("FLD-14")
def test_a_longer_value_that_begins_with_another_one_is_taken_whole() -> None:
    redactor = Redactor(["abcdefgh", "abcdefghIJKLMNOP"])
    assert streamed(redactor, [b"<abcdefgh", b"IJKLMNOP>"]) == b"<(secret)>"
    assert streamed(redactor, [b"<abcdefgh", b"!>"]) == b"<(secret)!>"
    assert streamed(redactor, [b"<plain"]) == b"<plain"


@pytest.mark.req("FLD-14")
@given(cut=st.integers(1, len(VALUE) - 1))
def test_two_pages_of_a_file_do_not_give_a_value_away(cut: int) -> None:
    redactor = Redactor([VALUE])
    first = redactor.page(b"some text before " + VALUE[:cut].encode())
    second = redactor.page(VALUE[cut:].encode() + b" and after")
    shown = first.decode().removeprefix("some text before ") + second.decode().removesuffix(" and after")
    assert VALUE not in shown
    assert len(shown.replace("(secret)", "")) <= 3


def test_without_secrets_nothing_is_held_back() -> None:
    stream = Stream(Redactor([]))
    assert (stream.feed(b"plum"), stream.rest()) == (b"plum", b"")
