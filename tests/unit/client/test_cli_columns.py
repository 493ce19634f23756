"""The command line's tables and the server's columns are the same (NOD-485, NOD-486)."""

from __future__ import annotations

from typing import Any

import pytest
from nodus.cli import columns
from nodus.cli.kinds import kind_of
from nodus_core.resources.kinds import BY_NAME, KINDS

SHOWN: dict[str, dict[str, Any]] = {
    "Agent": {
        "spec": {
            "model": {"access": "Nodus", "families": ["haiku", "sonnet"]},
            "perRunMaxCostUSD": "0.50",
            "network": {"egress": {"policy": "Deny"}},
        }
    },
    "AgentRun": {
        "spec": {"agent": "hello-agent", "input": "Print the version. " * 9, "model": {"name": "m0"}},
        "status": {
            "phase": "Waiting",
            "reason": "MessageWait",
            "turns": [{"model": "m1"}, {"model": "m2"}],
            "cost": {"totalUSD": "0.01", "limitUSD": "1", "computeUSD": "0.002"},
            "sandbox": {"phase": "Running"},
        },
    },
    "Budget": {"spec": {"limitUSD": "5"}, "status": {"phase": "Open", "spentUSD": "1.5"}},
    "Secret": {"spec": {}, "status": {"fields": ["A", "B"]}},
    "ApiKey": {
        "spec": {"role": "viewer", "projects": ["*"], "expiresAt": "2030-01-01T00:00:00Z"},
        "status": {
            "prefix": "nodus_1",
            "conditions": [{"type": "Ready", "status": "False", "reason": "Expired"}],
        },
    },
}


@pytest.mark.req("NOD-486")
@pytest.mark.parametrize("name", [kind.name for kind in KINDS])
def test_both_sides_show_the_same_columns(name: str) -> None:
    shown = {"metadata": {"name": "thing", "generation": 3}, **SHOWN.get(name, {})}
    ours, theirs = kind_of(name), BY_NAME[name].columns

    assert columns.header(ours, wide=True) == [column.name.upper() for column in theirs]
    assert columns.header(ours, wide=False) == [
        column.name.upper() for column in theirs if column.priority == 0
    ]
    cells = ["" if (cell := column.cell(shown)) is None else str(cell) for column in theirs]
    assert columns.row(ours, shown, wide=True) == cells


@pytest.mark.parametrize("name", [kind.name for kind in KINDS])
def test_both_sides_use_the_same_words(name: str) -> None:
    ours, theirs = kind_of(name), BY_NAME[name]
    assert (ours.word, ours.plural) == (theirs.singular, theirs.plural)
    assert ([ours.short] if ours.short else []) == list(theirs.short_names)
