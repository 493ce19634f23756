"""Ids are a function of position, and steps have the names that people see (NODQ-86)."""

import pytest
from nodus_core.kernel import ids


def test_the_same_position_has_the_same_id() -> None:
    assert ids.run_id("conv", 2) == "conv-2"
    assert ids.sandbox_id("conv", 1) == "conv-s1"
    assert ids.command_id(ids.run_id("conv", 2), ids.call_key(3, 0)) == "conv-2.r3t0"
    assert ids.execution_name("conv", 12) == "conv-12"
    assert len(ids.execution_name("run-" + "0" * 36, 10**9)) <= 80
    assert ids.digest("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.mark.parametrize(
    ("key", "number"),
    [("r3", 3), ("r12t4", 12), ("setup", None), ("route", None), ("r", None), ("r3t", None)],
)
def test_a_key_tells_its_round(key: str, number: int | None) -> None:
    assert ids.round_of(key) == number


@pytest.mark.req("NOD-071")
@pytest.mark.parametrize(
    ("key", "tool", "name"),
    [
        ("sandbox", "sandbox", "sandbox.7"),
        ("sandbox2", "sandbox", "sandbox.7"),
        ("setup2", "setup", "setup.7"),
        ("route", "route", "turn-2.route"),
        ("r7", None, "turn-2.model.7"),
        ("r7t1", "run_command", "turn-2.tool.run_command.7"),
    ],
)
def test_a_step_is_named_by_its_turn_kind_and_number(key: str, tool: str | None, name: str) -> None:
    assert ids.step_name(2, key, tool, 7) == name


@pytest.mark.req("NOD-071")
@pytest.mark.parametrize("name", ["sandbox", "setup"])
def test_the_first_sandbox_of_a_conversation_and_its_setup_have_no_number(name: str) -> None:
    assert ids.step_name(1, name, name, 1) == name
    assert ids.preparation(name) == ids.preparation(f"{name}3") == name


@pytest.mark.parametrize("key", ["route", "r1", "r1t0", "sandboxes", "sandbox.2"])
def test_other_keys_prepare_nothing(key: str) -> None:
    assert ids.preparation(key) is None
