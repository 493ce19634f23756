"""Messages to runs over REST, on the deployed local cloud."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.integration.runs.person import Person, in_turn

pytestmark = pytest.mark.timeout(120, func_only=True)


@pytest.mark.req("NOD-183", "NOD-472", "NOD-165", "NOD-176", "NOD-190", "NOD-041", "NOD-058")
def test_nex_17_follow_ups_work_on_the_same_files(person: Person) -> None:
    person.agent("keeper")
    run = person.start("keeper", in_turn("echo 4711 > number.txt && echo noted"), keepAlive=True)
    # Two at once, while the first turn works: each gets a turn of its own, in the order of acceptance.
    with ThreadPoolExecutor() as pool:
        sent = list(pool.map(lambda n: run.say(in_turn(f"cat number.txt && echo {n}"), f"k{n}"), range(2)))
    assert [answer.status_code for answer in sent] == [202, 202]
    turns = {answer.json()["turn"]: answer.json()["messageKey"] for answer in sent}
    assert sorted(turns) == [2, 3]
    status = run.waits("MessageWait")
    assert len(status["turns"]) == 3
    assert run.answer().startswith(f"4711\n{turns[3][1:]}\n")
    assert [step["name"] for step in run.steps() if step["kind"] == "sandbox"] == ["sandbox"]
    again = run.say(in_turn(f"cat number.txt && echo {turns[2][1:]}"), turns[2])
    assert (again.status_code, again.json()["turn"]) == (200, 2)
    assert len(run.status()["turns"]) == 3
    run.cancel()
    assert run.cleared()["phase"] == "Cancelled"


@pytest.mark.req("NOD-181", "NOD-182", "NODQ-19")
def test_a_run_without_keep_alive_reads_what_came_while_it_worked_and_finishes(person: Person) -> None:
    person.agent("reader")
    run = person.start("reader", in_turn("sleep 2 && echo first"))
    assert run.say(in_turn("echo second"), "k").status_code == 202
    status = run.succeeded()
    assert [turn["phase"] for turn in status["turns"]] == ["Succeeded", "Succeeded"]
    assert run.answer().startswith("second")
    refused = run.say(in_turn("echo third"), "late")
    assert (refused.status_code, refused.json()["reason"]) == (409, "AgentRunFinished")


@pytest.mark.req("FLD-12", "NOD-185")
def test_a_cancel_lists_what_was_not_read(person: Person) -> None:
    person.agent("busy-keeper")
    run = person.start("busy-keeper", in_turn("sleep 60"), keepAlive=True)
    run.reaches("tool.run_command.1", "Running")
    for key in ("one", "two"):
        assert run.say(in_turn("echo never"), key).status_code == 202
    run.cancel()
    status = run.cleared()
    assert status["undelivered"] == [{"messageKey": key, "reason": "Cancelled"} for key in ("one", "two")]
