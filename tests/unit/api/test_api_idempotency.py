"""Idempotency keys and races of equal calls (FLD-16)."""

from typing import Any

import pytest
from nodus_core.access.door import Place
from nodus_core.conversations.promises import promise
from nodus_core.conversations.shelf import Outcome, key_of
from nodus_core.journal.journal import Journal
from nodus_core.resources.manifest import Manifest
from nodus_core.resources.metadata import Metadata
from nodus_core.testing.crash import Crash, CrashOnce

from tests.unit.api.rest import Rest, manifest
from tests.unit.api.together import together

KEY = {"Idempotency-Key": "k-77"}
RUN = {"agent": "hello-agent", "input": "Do it."}
WEB = Place("acme", "web", "test")


@pytest.fixture
def rest() -> Rest:
    made = Rest()
    made.agent()
    return made


@pytest.mark.req("FLD-16")
def test_the_same_meaning_gives_the_first_outcome_again(rest: Rest) -> None:
    body = manifest("AgentRun", "r", RUN)
    first = rest.post("agentruns", body, headers=KEY)
    assert (first.code, first.headers.get("idempotent-replayed")) == (201, None)
    rest.world.settle()
    rest.patch("agents/hello-agent", {"spec": {"state": "Stopped"}})
    stored = rest.commits
    reordered = {**dict(reversed(body.items())), "spec": dict(reversed(RUN.items())), "status": {}}
    for again in (rest.post("agentruns", body, headers=KEY), rest.post("agentruns", reordered, headers=KEY)):
        assert (again.code, again.json) == (201, first.json)
        assert again.headers["idempotent-replayed"] == "true"
    assert rest.commits == stored


@pytest.mark.req("FLD-16")
def test_another_meaning_under_the_same_key_is_refused(rest: Rest) -> None:
    rest.post("agentruns", manifest("AgentRun", "r", RUN), headers=KEY)
    stored = rest.commits
    for other in (manifest("AgentRun", "r", {**RUN, "input": "Do it!"}), manifest("AgentRun", "r2", RUN)):
        refused = rest.post("agentruns", other, headers=KEY)
        assert (refused.code, refused.json["reason"]) == (409, "IdempotencyKeyConflict")
    assert rest.commits == stored


@pytest.mark.req("FLD-16")
def test_a_key_counts_in_its_project_and_path_only(rest: Rest) -> None:
    rest.apply("agents/hello-agent", manifest("Agent", "hello-agent", {}), project="lab")
    body = manifest("AgentRun", "r", RUN)
    one = rest.post("agentruns", body, headers=KEY).json["metadata"]
    other = rest.post("agentruns", body, headers=KEY, project="lab").json["metadata"]
    assert one["uid"] != other["uid"]
    agent = rest.post("agents", manifest("Agent", "a", {}), headers=KEY)
    assert (agent.code, "idempotent-replayed" in agent.headers) == (201, False)
    again = rest.post("agents", manifest("Agent", "a", {}), headers=KEY)
    assert (again.json, again.headers["idempotent-replayed"]) == (agent.json, "true")


@pytest.mark.req("FLD-16")
def test_a_refusal_is_not_remembered(rest: Rest) -> None:
    assert rest.post("agentruns", manifest("AgentRun", "r", {**RUN, "input": ""}), headers=KEY).code == 422
    assert rest.post("agentruns", manifest("AgentRun", "r", {**RUN, "agent": "no"}), headers=KEY).code == 404
    assert rest.post("agentruns", manifest("AgentRun", "r", RUN), headers=KEY).code == 201


@pytest.mark.req("NODQ-41")
def test_a_key_is_forgotten_after_a_day(rest: Rest) -> None:
    body = manifest("AgentRun", "r", RUN)
    rest.post("agentruns", body, headers=KEY)
    rest.world.clock.advance(24 * 3600)
    assert rest.post("agentruns", body, headers=KEY).code == 201
    rest.world.clock.advance(1)
    assert rest.post("agentruns", body, headers=KEY).json["reason"] == "AlreadyExists"
    other = rest.post("agentruns", manifest("AgentRun", "r2", RUN), headers=KEY)
    assert (other.code, "idempotent-replayed" in other.headers) == (201, False)


@pytest.mark.parametrize("key", ["", " ", "a b", "ä", "x" * 256])
def test_a_key_that_is_none_is_refused(rest: Rest, key: str) -> None:
    refused = rest.post("agentruns", manifest("AgentRun", "r", RUN), headers={"Idempotency-Key": key})
    assert (refused.code, refused.json["reason"]) == (400, "BadRequest")


def create(rest: Rest, spec: dict[str, Any], key: str | None) -> Outcome:
    wanted = Manifest("AgentRun", Metadata("r"), spec)
    promised = key and promise(key_of(WEB, "AgentRun", "r"), "POST", "/agentruns", key, wanted)
    return rest.gate.service.admission.admit_run(WEB, wanted, promised or None)


@pytest.mark.req("FLD-16")
def test_25_equal_creates_at_once_make_one_run(rest: Rest) -> None:
    outcomes, refusals = together(25, lambda _: create(rest, RUN, "k"))
    assert refusals == []
    assert len({outcome.object.uid for outcome in outcomes}) == 1
    assert sum(not outcome.replayed for outcome in outcomes) == 1
    assert len([commit for commit in rest.store.commits if commit.name == "admit"]) == 1
    assert len(rest.world.executions.names) == 1


@pytest.mark.req("FLD-16")
def test_of_25_different_creates_under_one_key_one_wins(rest: Rest) -> None:
    outcomes, refusals = together(25, lambda number: create(rest, {**RUN, "input": f"{number}"}, "k"))
    assert len(outcomes) == 1
    assert {refusal.reason for refusal in refusals} == {"IdempotencyKeyConflict"}


def test_of_25_creates_without_a_key_one_wins(rest: Rest) -> None:
    outcomes, refusals = together(25, lambda _: create(rest, RUN, None))
    assert len(outcomes) == 1
    assert {refusal.reason for refusal in refusals} == {"AlreadyExists"}


def test_applies_at_once_lose_no_change(rest: Rest) -> None:
    def apply(number: int) -> Outcome:
        return rest.gate.service.verbs["Agent"].apply(
            WEB, Manifest("Agent", Metadata("hello-agent"), {"system": f"{number}"})
        )

    outcomes, refusals = together(6, apply)
    assert all(refusal.reason == "Conflict" for refusal in refusals)
    generations = sorted(outcome.object.generation for outcome in outcomes)
    assert generations == list(range(2, 2 + len(outcomes)))
    stored = rest.get("agents/hello-agent").json
    last = max(outcomes, key=lambda outcome: outcome.object.generation)
    assert (stored["metadata"]["generation"], stored["spec"]) == (generations[-1], last.spec)


def test_an_agent_that_changes_during_the_admission_is_read_again(rest: Rest) -> None:
    shelf = rest.gate.service.admission.shelf
    plain, changes = shelf.journal.objects.admit, []

    def racing(*arguments: Any, **more: Any) -> None:
        if not changes:
            changes.append(
                rest.gate.service.verbs["Agent"].apply(
                    WEB, Manifest("Agent", Metadata("hello-agent"), {"system": "new"})
                )
            )
        plain(*arguments, **more)

    shelf.journal.objects.admit = racing  # type: ignore[method-assign]
    assert rest.run("r").json["status"]["agentGeneration"] == 2


@pytest.mark.req("FLD-16")
@pytest.mark.parametrize(("point", "admitted"), [("admit.before", False), ("admit.after", True)])
def test_a_call_that_dies_around_its_commit_may_be_made_again(rest: Rest, point: str, admitted: bool) -> None:
    shelf = rest.gate.service.admission.shelf
    plain = shelf.journal
    object.__setattr__(shelf, "journal", Journal(rest.store, rest.world.ids, CrashOnce(point)))
    body = manifest("AgentRun", "r", RUN)
    with pytest.raises(Crash):
        rest.post("agentruns", body, headers=KEY)
    object.__setattr__(shelf, "journal", plain)
    again = rest.post("agentruns", body, headers=KEY)
    assert (again.code, "idempotent-replayed" in again.headers) == (201, admitted)
    rest.world.settle()
    assert rest.get("agentruns/r").json["status"]["phase"] == "Succeeded"
    assert len([commit for commit in rest.store.commits if commit.name == "admit"]) == 1
