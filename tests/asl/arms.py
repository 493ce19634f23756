"""The arms of a state machine: every rule of a Choice, every error name of a Retry and of a Catch."""

import itertools
from collections.abc import Iterator
from typing import Any

Definition = dict[str, Any]


def arms(definition: Definition) -> list[str]:
    """All arms, named `STATE.WORD`, `STATE.Default`, `STATE.Retry.ERROR` or `STATE.Catch.ERROR`."""
    found: list[str] = []
    for name, state in definition["States"].items():
        found += [f"{name}.{rule['StringEquals']}" for rule in state.get("Choices", [])]
        found += [f"{name}.Default"] if "Default" in state else []
        for kind in ("Retry", "Catch"):
            found += [
                f"{name}.{kind}.{error}" for rule in state.get(kind, []) for error in rule["ErrorEquals"]
            ]
    return found


def taken(definition: Definition, path: list[str], failures: list[str], retries: int) -> list[str]:
    """The arms that an execution took, by the states that it entered and the errors that it met.

    `retries` of its failures were followed by another attempt; the last one may have been caught.
    """
    found = [*_retried(definition, failures[:retries])]
    caught = failures[retries:]
    for here, following in itertools.pairwise(path):
        state = definition["States"][here]
        if state["Type"] == "Choice":
            found.append(f"{here}.{_rule(state, following)}")
        elif caught and following in {rule["Next"] for rule in state.get("Catch", [])}:
            found.append(f"{here}.Catch.{_matching(state['Catch'], caught[-1])}")
    return list(dict.fromkeys(found))


def _retried(definition: Definition, failures: list[str]) -> Iterator[str]:
    (name,) = [name for name, state in definition["States"].items() if "Retry" in state]
    for error in failures:
        yield f"{name}.Retry.{_matching(definition['States'][name]['Retry'], error)}"


def _matching(rules: list[Definition], error: str) -> str:
    for rule in rules:
        for name in rule["ErrorEquals"]:
            if name in (error, "States.ALL"):
                return str(name)
    raise AssertionError(f"no rule takes {error}")


def _rule(state: Definition, following: str) -> str:
    for rule in state["Choices"]:
        if rule["Next"] == following:
            return str(rule["StringEquals"])
    return "Default"
