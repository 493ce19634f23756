"""Reading, comparing and merging documents."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nodus_core.kernel.errors import Refusal
from nodus_core.resources.agentrun import deadline
from nodus_core.resources.document import Written, canonical, read_json, unique
from nodus_core.resources.patch import merge, same
from nodus_core.resources.selectors import read_selector

NOW = datetime(2026, 1, 1, tzinfo=UTC)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)


@pytest.mark.req("FLD-16")
def test_meaning_is_compared_not_text() -> None:
    one = read_json(b'{"a": 1.50, "b": [1, 2.0], "c": {"x": null}}')
    other = read_json(b'{"c":{"x":null},"b":[1.0,2],"a":15e-1}')
    assert same(one, other)
    for different in (b'{"a":"1.50","b":[1,2],"c":{"x":null}}', b'{"a":1.5,"b":[2,1],"c":{"x":null}}', b"{}"):
        assert not same(one, read_json(different))
    assert not same({"a": 1}, {"a": True})
    assert not same({"a": {"number": "1"}}, {"a": 1})


@given(OBJECTS, OBJECTS)
def test_two_values_are_the_same_exactly_when_their_texts_are(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    def exactly(left: Any, right: Any) -> bool:
        if type(left) is not type(right):
            return False
        if isinstance(left, dict):
            return left.keys() == right.keys() and all(exactly(left[key], right[key]) for key in left)
        if isinstance(left, list):
            return len(left) == len(right) and all(map(exactly, left, right))
        return left == right

    assert (canonical(one) == canonical(other)) == exactly(one, other)


@given(OBJECTS, OBJECTS)
def test_a_merge_patch_is_what_the_rfc_says(target: dict[str, Any], patch: dict[str, Any]) -> None:
    merged = merge(target, patch)
    assert merge(merged, patch) == merged
    for key, value in patch.items():
        assert (key not in merged) if value is None else (key in merged)
    assert {key: merged[key] for key in target.keys() - patch.keys()} == {
        key: target[key] for key in target.keys() - patch.keys()
    }


@pytest.mark.parametrize(
    ("target", "patch", "wanted"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({"a": "foo"}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_the_examples_of_rfc_7386(target: Any, patch: Any, wanted: Any) -> None:
    assert merge(target, patch) == wanted


@pytest.mark.req("NODQ-92", "FLD-17")
def test_numbers_with_a_fraction_stay_as_written() -> None:
    value = read_json(b'{"a":1.10,"b":1E2,"c":10,"d":-0.0}')
    assert value == {"a": "1.10", "b": "1E2", "c": 10, "d": "-0.0"}
    assert [type(item) for item in value.values()] == [Written, Written, int, Written]


@pytest.mark.req("NODQ-21", "FLD-17")
@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-12-01T09:00:00+05:45", datetime(2026, 12, 1, 3, 15, tzinfo=UTC)),
        ("2026-12-01T09:00:00Z", datetime(2026, 12, 1, 9, tzinfo=UTC)),
        ("2026-12-01t09:00:00.123456789z", datetime(2026, 12, 1, 9, 0, 0, 123456, tzinfo=UTC)),
        ("2h", datetime(2026, 1, 1, 2, tzinfo=UTC)),
        ("1d2h3m4s", datetime(2026, 1, 2, 2, 3, 4, tzinfo=UTC)),
        ("0s", NOW),
    ],
)
def test_deadlines_have_one_meaning(text: str, moment: datetime) -> None:
    assert deadline(text, NOW) == moment


@pytest.mark.parametrize(
    "text",
    [
        "",
        "h",
        "2x",
        "2h ",
        "-2h",
        "1.5h",
        "2026-12-01",
        "2026-12-01T09:00Z",
        "2026-12-01T09:00:00",
        "2026-12-01 09:00:00Z",
        "2026-02-30T00:00:00Z",
        "2026-12-01T25:00:00Z",
        "2026-12-01T09:00:60Z",
        "2026-12-01T09:00:00+24:00",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+23:59",
        "٢h",
    ],
)
def test_other_times_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"must be a time|no date and time"):
        deadline(text, NOW)


@pytest.mark.req("NOD-470")
def test_selectors() -> None:
    obj = {"metadata": {"name": "a"}, "spec": {"group": "g"}, "status": {"phase": "Queued"}}
    for text, wanted in (
        (None, True),
        ("", True),
        ("spec.group=g", True),
        ("spec.group==g,metadata.name=a", True),
        (" spec.group = h ", False),
        ("spec.group!=h", True),
        ("spec.agent=", True),
        ("status.phase=Queued,metadata.name=b", False),
        ("spec.group = g ,\tmetadata.name != b", True),
        ("spec.group=" + " " * 1012 + "g", True),
    ):
        assert read_selector(text).matches(obj) is wanted, text
    for text in (
        "spec.group",
        "=x",
        "spec.system=x",
        "spec.group=a=b",
        ",",
        "spec.group>1",
        "spec.group!==a",
        "spec.group===a",
        "spec.group! =a",
        "!=a",
        "spec.group=a!",
        "spec.group=" + " " * 1012 + "!",
    ):
        with pytest.raises(Refusal, match="takes FIELD=VALUE"):
            read_selector(text)
    with pytest.raises(Refusal, match="has 1025 characters, at most 1024"):
        read_selector("spec.group=" + "g" * 1014)


def test_a_key_that_is_given_twice_is_found_by_looking_at_each_key_once() -> None:
    class Counted(str):
        """A key that counts how often it is compared: a search that looks back compares each with each."""

        __slots__ = ()
        compared = 0

        def __eq__(self, other: object) -> bool:
            Counted.compared += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    names = [f"key{number}" for number in range(20_000)]
    with pytest.raises(ValueError, match="key19999"):
        unique([(Counted(name), None) for name in (*names, names[-1])])
    assert Counted.compared < 2_000
    body = "{" + ",".join(f'"{name}":0' for name in (*names, "key7")) + "}"
    with pytest.raises(Refusal, match="'key7' is given twice"):
        read_json(body.encode())
