"""The table of kinds: words, columns and what a cell shows."""

import pytest
from nodus_core.resources.kinds import BY_NAME, BY_PLURAL, KINDS, Kind


def headers(name: str, priority: int = 0) -> list[str]:
    return [column.name.upper() for column in BY_NAME[name].columns if column.priority <= priority]


def test_every_word_means_one_kind() -> None:
    words = [word for kind in KINDS for word in (kind.plural, kind.singular, *kind.short_names)]
    assert len({*words}) == len(words)
    assert len(BY_PLURAL) == len(BY_NAME) == len(KINDS)


@pytest.mark.req("NODQ-04", "NODQ-104", "NOD-318")
def test_the_words_of_the_catalogue() -> None:
    assert {kind.name: kind.plural for kind in KINDS if kind.namespaced} == {
        "Agent": "agents",
        "AgentGroup": "agentgroups",
        "AgentRun": "agentruns",
        "Budget": "budgets",
        "Connection": "connections",
        "Endpoint": "endpoints",
        "Environment": "environments",
        "EnvironmentImage": "environmentimages",
        "Sandbox": "sandboxes",
        "Secret": "secrets",
    }
    short = {word: kind.name for kind in KINDS for word in kind.short_names}
    assert short == {"ag": "AgentGroup", "ar": "AgentRun", "sb": "Sandbox"}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_an_empty_object_has_cells(kind: Kind) -> None:
    assert kind.columns[0].cell({"metadata": {"name": "a"}}) == "a"
    assert all(column.cell({}) in (None, "") for column in kind.columns)
    assert all(column.description.endswith(".") for column in kind.columns)


@pytest.mark.req("NOD-320", "NOD-330", "NOD-485")
def test_a_groups_columns() -> None:
    assert headers("AgentGroup")[:5] == ["NAME", "PHASE", "RUNS", "ACTIVE", "COST"]
    counts = {"queued": 2, "active": 0, "waiting": 0, "succeeded": 2, "failed": 0, "cancelled": 1}
    shown = {
        "metadata": {"name": "g"},
        "status": {"phase": "Running", "counts": counts, "cost": {"totalUSD": "0.3"}},
    }
    cells = [column.cell(shown) for column in BY_NAME["AgentGroup"].columns[:5]]
    assert cells == ["g", "Running", "2/5", 0, "$0.3"]


@pytest.mark.req("NOD-407", "NOD-414", "NOD-416")
def test_a_sandboxes_columns() -> None:
    wanted = ["STATUS", "CPU", "MEMORY", "DISK", "IDLE-TIMEOUT", "COST"]
    assert headers("Sandbox") == ["NAME", *wanted, "AGE"]
