"""Lines that wait fill the line function's concurrency, and are woken nevertheless."""

from collections.abc import Iterator

import boto3
import pytest

from tests.integration.runs.machine import gate, room
from tests.integration.runs.person import Person, in_turn
from tests.integration.waiting import until

pytestmark = pytest.mark.timeout(400, func_only=True)

LINE = "nodus-line"
LIMIT = 3


@pytest.fixture
def limited(person: Person) -> Iterator[Person]:
    """A cloud whose operator gave lines little room (`lineConcurrency`)."""
    client = boto3.client("lambda", **person.cloud.cloud.client_arguments())
    usual = client.get_function_concurrency(FunctionName=LINE)["ReservedConcurrentExecutions"]
    assert usual > LIMIT
    client.put_function_concurrency(FunctionName=LINE, ReservedConcurrentExecutions=LIMIT)
    yield person
    client.put_function_concurrency(FunctionName=LINE, ReservedConcurrentExecutions=usual)


@pytest.mark.req("FLD-10")
def test_as_many_waiting_lines_as_the_limit_and_more_are_all_woken(limited: Person) -> None:
    person = limited
    person.agent("crowd")
    commanding = [person.start("crowd", in_turn("echo x >> did; " + gate(), "cat did")) for _ in range(LIMIT)]
    for run in commanding:
        run.reaches("tool.run_command.1")
    thinking = [person.start("crowd", "Think.") for _ in range(LIMIT)]
    for run in thinking:
        run.reaches("model.1")
    for run in commanding:
        own = room(person.cloud, run.status()["sandbox"]["name"])
        until(lambda own=own: own.read("did"), bool)
        own.open_gate()
    for run in (*commanding, *thinking):
        run.succeeded()
        assert {step["attempt"] for step in run.steps() if step["kind"] != "sandbox"} == {1}
    assert [run.answer() for run in commanding] == ["x\n[exit code 0]"] * LIMIT
