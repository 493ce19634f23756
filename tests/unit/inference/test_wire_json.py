"""Cutting JSON texts apart and putting them together again never changes a byte of a part."""

import json
import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nodus_core.inference.wires.json_text import (
    BadJson,
    array_text,
    dump,
    elements,
    members,
    mend_surrogates,
    object_text,
    parse,
)

blanks = st.text(" \t\n\r", max_size=2)
numbers = st.sampled_from(["0", "-0", "1.0", "1e5", "1E+05", "12345678901234567890", "0.1000", "-3.5e-7"])
escapes = st.sampled_from([r"\u0041", r"\/", r"\n", r"\\", r"\"", r"\ud83c\udf78", "é", "🍸", " ", "a b"])
strings = st.lists(escapes | st.sampled_from(string.ascii_letters), max_size=6).map(
    lambda p: f'"{"".join(p)}"'
)


def _containers(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    spaced = st.tuples(blanks, inner, blanks).map("".join)
    arrays = st.lists(spaced, max_size=4).map(lambda parts: f"[{','.join(parts)}]")
    pairs = st.tuples(blanks, strings, blanks, spaced).map(lambda p: f"{p[0]}{p[1]}{p[2]}:{p[3]}")
    objects = st.lists(pairs, max_size=4).map(lambda parts: f"{{{','.join(parts)}}}")
    return arrays | objects


texts = st.recursive(
    numbers | strings | st.sampled_from(["true", "false", "null"]), _containers, max_leaves=12
)


@given(st.lists(texts, max_size=5))
@pytest.mark.req("FLD-02")
def test_elements_come_out_of_an_array_as_they_were_put_in(parts: list[str]) -> None:
    assert elements(array_text(parts)) == parts


@given(st.dictionaries(st.text(max_size=5).filter(lambda key: key.isprintable()), texts, max_size=5))
@pytest.mark.req("FLD-02")
def test_members_come_out_of_an_object_as_they_were_put_in(parts: dict[str, str]) -> None:
    assert members(object_text(parts.items())) == parts


@given(texts, blanks, blanks)
def test_the_parts_of_any_document_stand_in_it_in_order(text: str, before: str, after: str) -> None:
    document = f"{before}[{after}{text}{before},{after}{text}]{after}"
    assert elements(document) == [text, text]
    assert parse(text) == json.loads(text)


def test_a_repeated_name_means_its_last_value() -> None:
    assert members('{"a": 1, "a" :2 }') == {"a": "2"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[1,",
        "[1,]",
        "[1] 2",
        '{"a"}',
        '{"a":}',
        "{1:2}",
        "[NaN]",
        "nul",
        "[" * 100_000,
        "9" * 5000,
        '"\\x"',
    ],
)
def test_what_is_no_json_is_refused_and_never_crashes(text: str) -> None:
    for read in (parse, members, elements):
        with pytest.raises(BadJson):
            read(text)


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        (r'"\ud83c\udf78"', r'"\ud83c\udf78"'),
        (r'"\ud83c"', r'"\ufffd"'),
        (r'"\udf78\ud83c"', r'"\ufffd\ufffd"'),
        (r'"\ud83c\ud83c\udf78"', r'"\ufffd\ud83c\udf78"'),
        (r'"\\ud83c"', r'"\\ud83c"'),
        (r'"\\ud83c\udf78"', r'"\\ud83c\ufffd"'),
        (r'"\\\uD83C!"', r'"\\\ufffd!"'),
        (r'"A\n"', r'"A\n"'),
    ],
)
def test_half_a_surrogate_pair_becomes_the_replacement_character(text: str, mended: str) -> None:
    assert mend_surrogates(text) == mended
    mend_surrogates(text).encode()


@given(st.text(st.characters(codec=None), max_size=20))
def test_a_dumped_text_can_always_be_sent(text: str) -> None:
    sent = dump({"text": text}).encode()
    assert json.loads(sent)["text"] == re.sub("[\ud800-\udfff]", "\ufffd", text)


pieces = st.sampled_from([r"\ud83c", r"\udf78", r"\\", r"\n", "ud83c", "x"])


@given(st.lists(pieces, max_size=8).map("".join))
def test_a_mended_text_holds_characters_only_and_keeps_whole_pairs(text: str) -> None:
    mended = json.loads(mend_surrogates(f'"{text}"'))
    mended.encode()
    assert mended == json.loads(f'"{text}"').encode("utf-16", "surrogatepass").decode("utf-16", "replace")
