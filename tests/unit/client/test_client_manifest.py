"""Manifests have one meaning, or are refused with their line and field (FLD-17)."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
import yaml
from nodus._manifest import MAX_BYTES, parse, parse_json
from nodus.errors import ManifestError

pytestmark = pytest.mark.req("FLD-17")


def one(text: str | bytes) -> Any:
    (document,) = parse(text, "f.yaml")
    return document.value


@pytest.mark.parametrize(
    "word",
    [
        "on",
        "off",
        "yes",
        "no",
        "On",
        "NO",
        "y",
        "n",
        "1e3",
        "0100",
        "0o17",
        "0x1F",
        "1.10",
        "0.50",
        "1_000",
        "+5",
        "-0",
        ".5",
        "1.",
        "12:30:45",
        "2026-12-01",
        "2026-12-01T09:00:00+05:45",
        ".inf",
        ".nan",
        "NaN",
        "=",
        "TrUe",
        "99999999999999999999",
    ],
)
def test_a_plain_word_stays_as_written(word: str) -> None:
    assert one(f"field: {word}") == {"field": word}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("50", 50),
        ("0", 0),
        ("-7", -7),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ('"50"', "50"),
        ("'true'", "true"),
        ('""', ""),
        ("!!str 50", "50"),
        ("|\n  50", "50"),
    ],
)
def test_what_is_no_text(text: str, value: Any) -> None:
    assert one(f"a: 1\nfield: {text}")["field"] == value
    assert type(one(f"a: 1\nfield: {text}")["field"]) is type(value)


def test_keys_are_words_as_written() -> None:
    assert one("on: 1\n0100: 2\nnull: 3\n") == {"on": 1, "0100": 2, "null": 3}


@pytest.mark.parametrize(
    ("text", "line", "field"),
    [
        ("spec:\n  maxToolCalls: 1\n  x: 2\n  maxToolCalls: 3\n", 4, "spec.maxToolCalls"),
        ("a: {b: 1, b: 2}", 1, "a.b"),
        ('a: [{"b": 1,\n"b": 2}]', 2, "a[0].b"),
        ('{"a": {"b": 1,\n "b": 2}}', 2, "a.b"),
        ("a:\n  <<: {b: 1}", 2, "a.<<"),
        ("a: !!python/object/apply:os.system [true]", 1, "a"),
        ("a: !!int '3'", 1, "a"),
        ("x: &a [*a]", 1, "x[0]"),
        ("x: *nothing", 1, "x"),
        ("a:\n  ? [1]\n  : 2", 2, "a"),
    ],
)
def test_refusals_name_line_and_field(text: str, line: int, field: str) -> None:
    with pytest.raises(ManifestError) as caught:
        parse(text, "f.yaml")
    assert (caught.value.line, caught.value.field) == (line, field)
    assert str(caught.value).startswith(f"f.yaml line {line}: {field}: ")


@pytest.mark.parametrize("text", ["a: [", "a: b: c", "\ta: 1", "a: 'x", "%YAML 9.9\n---\n", "a: \x07", "@a"])
def test_broken_yaml_is_refused(text: str) -> None:
    with pytest.raises(ManifestError, match=r"f\.yaml.*not YAML"):
        parse(text, "f.yaml")


def test_bytes_that_are_no_utf_8_are_refused_with_their_line() -> None:
    with pytest.raises(ManifestError, match=r"line 2: not UTF-8"):
        parse(b"a: 1\nb: \xff\n", "f.yaml")


def bomb(levels: int = 9) -> str:
    lines = ["l0: &l0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, levels)]
    return "\n".join(lines)


def test_an_alias_bomb_is_refused_before_it_takes_memory() -> None:
    tracemalloc.start()
    with pytest.raises(ManifestError, match="aliases"):
        parse(bomb(), "f.yaml")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5 * 1024 * 1024


def test_an_alias_of_a_long_text_counts_by_its_length() -> None:
    text = f"a: &a {'x' * 100_000}\nb: [{', '.join(['*a'] * 60)}]"
    with pytest.raises(ManifestError, match="aliases"):
        parse(text, "f.yaml")


def test_an_ordinary_alias_is_its_value() -> None:
    assert one("a: &x {b: [1, two]}\nc: *x\nd: *x") == {key: {"b": [1, "two"]} for key in "acd"}


@pytest.mark.parametrize("text", ["[" * 100 + "]" * 100, '{"a":' * 100 + "1" + "}" * 100, "[" * 100_000])
def test_depth_is_bounded(text: str) -> None:
    with pytest.raises(ManifestError, match="nest"):
        parse(text, "f.yaml")


@pytest.mark.parametrize("text", ["a: [" + "1," * 100_001 + "]", '{"a": [' + "1," * 100_001 + "1]}"])
def test_the_number_of_values_is_bounded(text: str) -> None:
    with pytest.raises(ManifestError):
        parse(text, "f.yaml")


def test_size_is_bounded() -> None:
    with pytest.raises(ManifestError, match="split"):
        parse("#" * (MAX_BYTES + 1), "f.yaml")


@pytest.mark.parametrize("text", ["", "\n", "# only\n", "---\n", "---\n---\n...\n", "\ufeff", "null\n"])
def test_empty_documents_are_nothing(text: str) -> None:
    assert parse(text, "f.yaml") == []
    assert parse(text.encode(), "f.yaml") == []


@pytest.mark.req("NOD-006")
def test_documents_keep_their_order_and_lines() -> None:
    first, second = parse(b"\xef\xbb\xbfa: 1\r\n---\r\n\r\n---\r\nb:\r\n- {c: x}\r\n", "f.yaml")
    assert (first.value, second.value) == ({"a": 1}, {"b": [{"c": "x"}]})
    assert (first.line_of("a"), second.line_of("b[0].c"), second.line_of("b[0].c.d.e")) == (1, 6, 6)
    assert second.line_of("nowhere") == second.line_of("")


def test_line_breaks_of_windows_are_line_breaks() -> None:
    assert one(b"a: |\r\n  x\r\n  y\r\n") == {"a": "x\ny\n"}


def test_json_reads_like_yaml() -> None:
    text = (
        '{"a": 1.10,\t"b": 1e3, "c": "\\ud83d\\ude00 \\/", "d": [true, null, 12], "e": 99999999999999999999}'
    )
    expected = {"a": "1.10", "b": "1e3", "c": "😀 /", "d": [True, None, 12], "e": "99999999999999999999"}
    assert one(text) == expected
    assert parse_json(text, "--patch") == expected


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"a":1,"a":2}', "a: this key is given twice"),
        ("{a: 1}", "not JSON"),
        ("[1]", "JSON object"),
        ("", "not JSON"),
    ],
)
def test_a_patch_is_one_json_object(text: str, says: str) -> None:
    with pytest.raises(ManifestError, match=says):
        parse_json(text, "--patch")


def test_what_pyyaml_writes_reads_back() -> None:
    value = {
        "a": ["on", "1e3", "0100", "2026-12-01", "null", "true", "", "x: y", "# c", "é\n\tz"],
        "b": {"c": [1, None]},
    }
    assert one(yaml.safe_dump(value, allow_unicode=True)) == value
