"""The part of kubectl's JSONPath that is read, and how."""

from __future__ import annotations

from typing import Any

import pytest
from nodus._jsonpath import parse_path
from nodus.cli.jsonpath import Template
from nodus.errors import NodusError

THING: dict[str, Any] = {
    "kind": "List",
    "n": 3,
    "yes": True,
    "nothing": None,
    "labels": {"a.b": "dot", "c-d": "dash"},
    "items": [{"name": "x", "tags": ["t", "u"]}, {"name": "y"}],
}


@pytest.mark.parametrize(
    ("template", "shown"),
    [
        ("{.kind}", "List"),
        ("{$.kind}", "List"),
        (".kind", "List"),
        ("kind", "List"),
        ("{ .kind }", "List"),
        ("{['kind']}", "List"),
        ("{.labels['a.b']}{.labels[\"c-d\"]}{.labels.c-d}", "dotdashdash"),
        ("{.n} {.yes} {.nothing}", "3 true null"),
        ("{.items[0].name}{.items[-1].name}", "xy"),
        ("{.items[9].name}{.none.below}{.kind.below}{.kind[0]}", ""),
        ("{.items[*].name}", "x y"),
        ("{.items[0].tags}", '["t","u"]'),
        ("{.items[1]}", '{"name":"y"}'),
        ("{.labels.*}", "dot dash"),
        ("{range .items[*]}{.name}{'\\t'}{range .tags[*]}<{@}>{end}{\"\\n\"}{end}", "x\t<t><u>\ny\t\n"),
        ("a {.n} b", "a 3 b"),
        ("{'{'}{.n}{'}'}", "{3}"),
    ],
)
def test_templates(template: str, shown: str) -> None:
    assert Template(template).render(THING) == shown


@pytest.mark.parametrize(
    "template",
    [
        "{.a",
        "{.a}}",
        "{range .a}",
        "{end}",
        "{..a}",
        "{.a[1:2]}",
        "{.a[?(@.b==1)]}",
        "{.a b}",
        "{.a['b}",
        "{['a','b']}",
        "{}x{",
    ],
)
def test_what_is_not_supported_is_refused(template: str) -> None:
    with pytest.raises(NodusError, match="JSONPath"):
        Template(template)


def test_one_path_with_or_without_braces() -> None:
    assert parse_path("{.status.phase}").steps == parse_path(".status.phase").steps == ("status", "phase")
    assert parse_path(".").values(THING) == [THING]
