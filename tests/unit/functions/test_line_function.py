"""The line function as Step Functions calls it."""

import pytest
from nodus_core.conversations.worker import MOST_ROUNDS
from nodus_core.journal.keys import conversation_key
from nodus_core.testing.world import NAMES
from pydantic import ValidationError

from functions.line import handler as line
from functions.reactor import handler as reactor
from tests.unit.functions.deployed import Deployed

ORDER = {"line": "conv", "generation": 1}


@pytest.mark.req("NOD-074")
def test_a_line_is_advanced_to_its_end(deployed: Deployed) -> None:
    assert deployed.call(line, ORDER) == {"next": "done"}
    obj = deployed.world.journal.object(NAMES)
    assert obj is not None
    assert obj.status["phase"] == "Succeeded"
    assert deployed.call(line, ORDER) == {"next": "done"}


def test_an_execution_of_another_generation_ends_and_changes_nothing(deployed: Deployed) -> None:
    before = deployed.world.store.rows()  # type: ignore[attr-defined] - the in-memory double
    assert deployed.call(line, {"line": "conv", "generation": 2}) == {"next": "done"}
    assert deployed.call(line, {"line": "nobody", "generation": 1}) == {"next": "done"}
    assert deployed.world.store.rows() == before  # type: ignore[attr-defined]


def test_an_invocation_whose_time_is_nearly_up_asks_for_the_next_one(deployed: Deployed) -> None:
    assert deployed.call(line, ORDER, seconds=100) == {"next": "again"}
    assert deployed.call(line, ORDER) == {"next": "done"}


@pytest.mark.req("NOD-074", "NODQ-77")
def test_an_execution_that_has_gone_round_often_enough_hands_over_at_once(deployed: Deployed) -> None:
    world = deployed.world
    world.executions.waiting.clear()
    world.has_gone_round(MOST_ROUNDS - 1)
    assert deployed.call(line, ORDER, seconds=100) == {"next": "again"}
    assert deployed.call(line, ORDER, seconds=100) == {"next": "rest"}
    deployed.call(reactor, {"Records": [deployed.record(conversation_key("conv"))]})
    assert world.executions.waiting == [("conv", 2)]
    assert deployed.call(line, ORDER) == {"next": "done"}
    assert deployed.call(line, {**ORDER, "generation": 2}, seconds=100) == {"next": "again"}
    assert deployed.call(line, {**ORDER, "generation": 2}) == {"next": "done"}
    obj = world.journal.object(NAMES)
    assert obj is not None
    assert obj.status["phase"] == "Succeeded"


@pytest.mark.filterwarnings("ignore:No application metrics")
@pytest.mark.parametrize("order", [{}, {"line": "", "generation": 1}, {"line": "conv", "generation": 0}])
def test_an_order_that_is_none_fails_loudly(deployed: Deployed, order: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        deployed.call(line, order)
