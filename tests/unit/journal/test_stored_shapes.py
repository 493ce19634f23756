"""What is stored comes back as it was, and what earlier releases stored can still be read."""

import types
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nodus_core.journal.codec import SHAPE, from_row, to_row
from nodus_core.journal.values import canonical
from nodus_core.kernel.errors import CorruptRow
from nodus_core.kernel.objects import Conversation, Run
from nodus_core.kernel.tasks import Task
from nodus_core.kernel.text import Inline, Stored, Text

from tests.fixtures.journal.kinds import KINDS, barest, fullest
from tests.fixtures.journal.samples import FOLDER, from_json

NAMES = {kind.__name__.lower(): kind for kind in KINDS}
SAMPLES = sorted(FOLDER.glob("v*/*.json"))

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
texts = st.builds(Inline, words) | st.builds(Stored, st.just("0" * 64), st.integers(4097, 10**9), words)
plain: dict[Any, st.SearchStrategy[Any]] = {
    str: words,
    int: st.integers(0, 2**53),
    bool: st.booleans(),
    Decimal: st.decimals(-(10**6), 10**6, places=9),
    datetime: st.integers(0, 10**12).map(
        lambda ms: datetime(2000, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)
    ),
    Any: st.recursive(
        st.none() | words | st.integers(-(2**53), 2**53) | st.booleans(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words.filter(bool), inner, max_size=3),
        max_leaves=6,
    ),
}


def values(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a field with this type."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in (Text, Text | None):
        return texts if hint == Text else st.none() | texts
    if origin in (Union, types.UnionType):
        return st.none() | values(next(item for item in arguments if item is not type(None)))
    if origin is tuple:
        return st.lists(values(arguments[0]), max_size=3).map(tuple)
    if origin is dict:
        return st.dictionaries(words.filter(bool), values(arguments[1]), max_size=3)
    if origin is frozenset:
        return st.frozensets(words, max_size=3)
    if is_dataclass(hint):
        return objects(hint)  # type: ignore[arg-type]
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return st.sampled_from(list(hint))
    return plain.get(hint, words)


def objects(kind: type) -> st.SearchStrategy[Any]:
    hints = get_type_hints(kind)
    return st.builds(kind, **{spec.name: values(hints[spec.name]) for spec in fields(kind)})


@pytest.mark.req("INV-52")
@pytest.mark.parametrize("kind", KINDS)
def test_every_object_comes_back_as_it_was_stored(kind: type) -> None:
    @given(thing=objects(kind))
    def comes_back(thing: Any) -> None:
        assert from_row(kind, canonical(to_row(thing))) == thing

    comes_back()


@pytest.mark.parametrize("path", SAMPLES, ids=[f"{path.parent.name}-{path.stem}" for path in SAMPLES])
def test_rows_of_every_shape_can_be_read(path: Any) -> None:
    kind = NAMES[path.stem]
    known = {spec.name for spec in fields(kind)}
    for row in from_json(path.read_text()):
        assert f"v{row['v']}" == path.parent.name
        stored = {name: row[name] for name in row.keys() & known}
        assert kept(stored, canonical(to_row(from_row(kind, row)))) == stored


def kept(old: Any, new: Any) -> Any:
    """What of `new` stands where `old` has something: an object within a row may have got further fields since."""
    if isinstance(old, dict) and isinstance(new, dict):
        return {name: kept(item, new[name]) for name, item in old.items() if name in new}
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [kept(*pair) for pair in zip(old, new, strict=True)]
    return new


def test_every_kind_has_a_sample_of_the_present_shape() -> None:
    written = {path.stem for path in SAMPLES if path.parent.name == f"v{SHAPE}"}
    assert written == set(NAMES)


@pytest.mark.parametrize("kind", KINDS)
def test_fields_of_later_releases_are_ignored_and_absent_ones_have_their_defaults(kind: type) -> None:
    assert from_row(kind, {**to_row(fullest(kind)), "of_a_later_release": [1]}) == fullest(kind)
    assert from_row(kind, to_row(barest(kind))) == barest(kind)


@pytest.mark.parametrize(
    ("kind", "damage"),
    [
        (Task, {"state": "nothing"}),
        (Task, {"started_at": "yesterday"}),
        (Task, {"key": None}),
        (Task, {"claim": "nobody"}),
        (Run, {"available": "much"}),
        (Run, {"attention": [5]}),
        (Conversation, {"line": {}}),
        (Conversation, {"context": 5}),
        (Conversation, {"context": {"sha256": "0"}}),
    ],
)
def test_a_damaged_row_is_named_and_not_guessed_at(kind: type, damage: dict[str, Any]) -> None:
    row = {**to_row(fullest(kind)), **damage, "pk": "run#conv-1", "sk": "t#r1"}
    with pytest.raises(CorruptRow, match=kind.__name__ if "line" not in damage else "Line"):
        from_row(kind, row)
