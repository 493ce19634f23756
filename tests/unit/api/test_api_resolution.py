"""A person says what became of a step whose outcome is not known (NODQ-55), from the wire."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from nodus_core.inference.exchange import ToolResults
from nodus_core.journal.store import Key, Row
from nodus_core.testing.memory_store import MemoryStore
from nodus_core.testing.scripted_model import plays, says
from nodus_core.testing.scripted_sandbox import RUNNING, exited

from tests.unit.api.rest import Reply, Rest, manifest

STEP = "turn-1.tool.run_command.1"
SECOND = "turn-1.tool.run_command.2"
PAY = says("pay", ("run_command", {"command": "pay --amount 5"}))
PAIR = says("both", ("run_command", {"command": "a"}), ("run_command", {"command": "b"}))
WRITE = says("write", ("write_file", {"path": "f", "content": "x"}))
LOST = {"state": "lost", "reason": "internal", "message": "its record is gone"}
ENDS = {"a": LOST, "b": RUNNING}


@dataclass
class Parked:
    """A run of one agent whose commands get lost. `deadly`: with their sandbox; else their daemon lives on."""

    message: Any = PAY
    deadly: bool = False
    setup: str | None = None
    lost: int = 1
    run: str = "agentruns/hello-run"
    store: MemoryStore | None = None
    behaved: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.rest = Rest(plays([self.message, says("Done.")]), self._behave, store=self.store)
        spec = {"setup": self.setup} if self.setup else {}
        self.rest.agent(**spec)
        assert self.rest.run().code == 201
        self.settle()

    def _behave(self, kind: str, request: dict[str, Any]) -> dict[str, Any]:
        self.behaved.append(request.get("command", kind))
        if len(self.behaved) > self.lost:
            return exited("ran\n")
        if self.deadly:
            for daemon in self.rest.world.sandboxes.daemons.values():
                daemon.alive = False
            return exited()
        return LOST

    def settle(self) -> None:
        self.rest.world.settle()

    @property
    def status(self) -> dict[str, Any]:
        return self.rest.get(self.run).json["status"]

    def step(self, name: str = STEP) -> dict[str, Any]:
        (found,) = [item for item in self.rest.get(f"{self.run}/steps").json["items"] if item["name"] == name]
        return found

    def say(self, outcome: str, step: str = STEP, *, request: str = "k1", **more: Any) -> Reply:
        result = {"result": more.pop("result")} if "result" in more else {}
        body = {"step": step, "outcome": outcome, "requestKey": request, **result}
        return self.rest.post(f"{self.run}/resolution", body, **more)

    def heard(self) -> list[str]:
        """What the model was told of its calls."""
        last = self.rest.world.models.requests[-1].messages[-1]
        assert isinstance(last, ToolResults)
        return [result.text for result in last.results]


@pytest.mark.req("NOD-085", "NOD-090", "NOD-034")
def test_a_parked_run_says_what_is_not_known_since_when_and_what_to_do() -> None:
    run = Parked()
    status = run.status
    assert (status["phase"], status["reason"]) == ("Waiting", "NeedsResolution")
    assert "nodus agentrun resolve" in status["message"]
    (entry,) = status["unresolved"]
    assert entry["step"] == STEP
    assert entry["what"] == "OutcomeUnknown"
    assert entry["guarantee"] == "AtMostOnce"
    assert "pay --amount 5" in entry["input"]
    step = run.step()
    assert (step["state"], step["guarantee"], step["attempt"]) == ("Uncertain", "AtMostOnce", 1)
    assert "finishedAt" not in step
    assert entry["since"] >= step["startedAt"]


@pytest.mark.req("NODQ-55", "INV-10")
@pytest.mark.parametrize("deadly", [False, True])
def test_what_happened_is_taken_as_the_person_says_and_the_run_goes_on(deadly: bool) -> None:
    run = Parked(deadly=deadly)
    said = run.say("Happened", result={"text": "paid 5", "exitCode": 0})
    assert said.code == 202
    assert said.json["status"]["phase"] == "Running"
    assert "unresolved" not in said.json["status"]
    run.settle()
    assert run.status["phase"] == "Succeeded"
    assert run.behaved == ["pay --amount 5"]  # never a second time
    (heard,) = run.heard()
    assert heard.startswith("paid 5\n[exit code 0;")
    assert "a person" in heard
    step = run.step()
    assert (step["state"], step["exitCode"], step["attempt"]) == ("Completed", 0, 1)
    assert step["resolution"] == {
        "outcome": "Happened",
        "by": "test",
        "at": step["resolution"]["at"],
        "attempt": 1,
    }


@pytest.mark.req("NODQ-55")
def test_what_happened_with_a_bad_end_is_told_as_an_error() -> None:
    run = Parked()
    run.say("Happened", result={"exitCode": 3})
    run.settle()
    (result,) = run.rest.world.models.requests[-1].messages[-1].results  # type: ignore[union-attr] - results
    assert result.is_error
    assert "exit code 3" in result.text
    assert (run.step()["state"], run.step()["exitCode"]) == ("Completed", 3)


@pytest.mark.req("NODQ-55")
def test_what_happened_without_a_known_result_is_told_as_such() -> None:
    run = Parked()
    assert run.say("Happened").code == 202
    run.settle()
    (heard,) = run.heard()
    assert "how it ended is not known" in heard
    assert "exitCode" not in run.step()
    assert run.status["phase"] == "Succeeded"


@pytest.mark.req("NODQ-55", "NOD-092", "INV-10")
def test_what_did_not_happen_is_done_again_in_the_sandbox_that_lives() -> None:
    run = Parked()
    run.settle()
    assert run.behaved == ["pay --amount 5"]  # not before somebody has said so
    assert run.say("DidNotHappen").code == 202
    run.settle()
    assert run.status["phase"] == "Succeeded"
    assert run.behaved == ["pay --amount 5"] * 2
    assert run.heard() == ["ran\n[exit code 0]"]
    step = run.step()
    assert (step["state"], step["attempt"], step["exitCode"]) == ("Completed", 2, 0)
    assert (step["resolution"]["outcome"], step["resolution"]["attempt"]) == ("DidNotHappen", 1)
    sandboxes = {sandbox for sandbox, _ in run.rest.world.sandboxes.effects}
    assert len(sandboxes) == 1
    assert len(set(run.rest.world.sandboxes.effects)) == 2


@pytest.mark.req("NODQ-55", "NOD-085")
def test_a_further_attempt_may_get_lost_as_well_and_is_asked_for_again() -> None:
    run = Parked(lost=2)
    run.say("DidNotHappen")
    run.settle()
    assert run.status["reason"] == "NeedsResolution"
    assert (run.step()["state"], run.step()["attempt"]) == ("Uncertain", 2)
    assert run.say("DidNotHappen", request="k2").code == 202
    run.settle()
    assert (run.status["phase"], run.step()["attempt"]) == ("Succeeded", 3)
    assert run.behaved == ["pay --amount 5"] * 3


@pytest.mark.req("NODQ-55", "INV-10")
def test_what_did_not_happen_in_a_sandbox_that_is_gone_is_not_done_in_another_unasked() -> None:
    run = Parked(deadly=True)
    assert run.say("DidNotHappen").code == 202
    run.settle()
    assert run.behaved == ["pay --amount 5"]
    (heard,) = run.heard()
    assert "did not happen" in heard
    assert "was not done again" in heard
    assert (run.step()["state"], run.step()["error"], run.step()["attempt"]) == ("Failed", "SandboxGone", 1)
    assert run.status["phase"] == "Succeeded"


@pytest.mark.req("NODQ-55", "NOD-092")
def test_each_of_several_is_resolved_on_its_own_and_the_run_goes_on_with_the_last() -> None:
    run = Parked(PAIR, lost=2)
    assert [entry["step"] for entry in run.status["unresolved"]] == [STEP, SECOND]
    half = run.say("DidNotHappen", SECOND).json["status"]
    assert (half["phase"], half["reason"]) == ("Waiting", "NeedsResolution")
    assert [entry["step"] for entry in half["unresolved"]] == [STEP]
    run.settle()
    assert run.behaved == ["a", "b"]
    assert [entry["step"] for entry in run.status["unresolved"]] == [STEP]
    assert run.say("Happened", request="k2", result={"text": "did a", "exitCode": 0}).code == 202
    run.settle()
    assert run.behaved == ["a", "b", "b"]
    assert run.status["phase"] == "Succeeded"
    first, second = run.heard()
    assert first.startswith("did a\n")
    assert second == "ran\n[exit code 0]"


@pytest.mark.req("NODQ-55", "INV-16")
def test_one_may_be_resolved_while_another_still_runs() -> None:
    rest = Rest(plays([PAIR, says("Done.")]), lambda kind, request: ENDS[request["command"]])
    world, said = rest.world, list[Reply]()
    wait = world.clock.sleep

    def meanwhile(seconds: float) -> None:
        wait(seconds)
        steps = {item["name"]: item["state"] for item in rest.get("agentruns/hello-run/steps").json["items"]}
        if steps.get(STEP) == "Uncertain" and not said:
            assert steps[SECOND] == "Running"
            body = {"step": STEP, "outcome": "Happened", "requestKey": "k", "result": {"text": "did a"}}
            said.append(rest.post("agentruns/hello-run/resolution", body))
        elif said:
            for daemon in world.sandboxes.daemons.values():
                daemon.known = {
                    name: exited("b\n") if end is RUNNING else end for name, end in daemon.known.items()
                }

    world.clock.sleep = meanwhile  # type: ignore[method-assign]
    rest.agent()
    rest.run()
    world.settle()
    assert [reply.code for reply in said] == [202]
    status = rest.get("agentruns/hello-run").json["status"]
    assert status["phase"] == "Succeeded"
    results = world.models.requests[-1].messages[-1]
    assert isinstance(results, ToolResults)
    assert [result.text.splitlines()[0] for result in results.results] == ["did a", "b"]


@pytest.mark.req("NODQ-55", "NOD-087", "NOD-164")
def test_a_setup_that_did_not_happen_runs_now() -> None:
    run = Parked(says("Nothing to do."), setup="make ready")
    assert [entry["step"] for entry in run.status["unresolved"]] == ["setup"]
    assert run.rest.world.models.requests == []
    run.say("DidNotHappen", "setup")
    run.settle()
    assert run.behaved == ["make ready"] * 2
    assert run.status["phase"] == "Succeeded"
    assert (run.step("setup")["state"], run.step("setup")["attempt"]) == ("Completed", 2)


@pytest.mark.req("NODQ-55", "NOD-087")
@pytest.mark.parametrize(("code", "phase"), [(0, "Succeeded"), (4, "Failed")])
def test_a_setup_that_happened_ended_as_the_person_says(code: int, phase: str) -> None:
    run = Parked(says("Nothing to do."), setup="make ready")
    refused = run.say("Happened", "setup")
    assert (refused.code, refused.fields) == (422, ["result.exitCode"])
    assert run.say("Happened", "setup", result={"exitCode": code}).code == 202
    run.settle()
    assert run.behaved == ["make ready"]
    assert run.status["phase"] == phase
    assert run.step("setup")["exitCode"] == code
    if code:
        assert run.status["reason"] == "SetupFailed"
        assert run.rest.world.models.requests == []


# --- keys and others who resolve ---


@pytest.mark.req("NODQ-55", "FLD-16")
def test_the_same_key_gives_the_first_answer_again_and_does_nothing_twice() -> None:
    run = Parked()
    first = run.say("DidNotHappen")
    commits = run.rest.commits
    again = run.say("DidNotHappen")
    assert (again.code, again.json) == (202, first.json)
    assert again.headers["idempotent-replayed"] == "true"
    assert "idempotent-replayed" not in first.headers
    assert run.rest.commits == commits
    run.settle()
    late = run.say("DidNotHappen")  # also when all is over
    assert (late.code, late.json) == (202, first.json)
    assert run.behaved == ["pay --amount 5"] * 2


@pytest.mark.req("NODQ-55", "FLD-16")
@pytest.mark.parametrize(
    ("outcome", "settled"), [("Happened", False), ("Happened", True), ("DidNotHappen", False)]
)
def test_equal_statements_at_once_are_one_wherever_they_meet(outcome: str, settled: bool) -> None:
    """The other one is heard after any of this one's reads: both get one answer, or the key's other meaning shows."""
    moment = 0
    while True:
        moment += 1
        store = Interrupted()
        run = Parked(store=store)
        first: list[Reply] = []

        def other(run: Parked = run, first: list[Reply] = first) -> None:
            first.append(run.say(outcome))
            if settled:
                run.settle()

        store.left, store.then = moment, other
        second = run.say("Happened")
        if not first:
            break  # it reads no more than this
        kept, later = (first[0], second) if first[0].code == 202 else (second, first[0])
        if outcome == "Happened":
            replayed = ["idempotent-replayed" in reply.headers for reply in (first[0], second)]
            assert (first[0].code, second.code, sorted(replayed)) == (202, 202, [False, True]), moment
            assert second.json == first[0].json or replayed[0], moment
        else:
            assert kept.code == 202, moment
            assert (later.code, later.json["reason"]) == (409, "IdempotencyKeyConflict"), moment
        assert len(run.rest.world.sandboxes.effects) == 1
    assert moment > 5


class Interrupted(MemoryStore):
    """A store in which something happens after a number of reads."""

    then: Callable[[], None] | None = None
    left = 0

    def get(self, keys: Sequence[Key]) -> list[Row | None]:
        rows = super().get(keys)
        self.left -= 1
        then = self.then
        if then is not None and self.left == 0:
            self.then = None
            then()
        return rows


@pytest.mark.req("NODQ-55", "FLD-16")
def test_a_key_stands_for_one_statement() -> None:
    run = Parked()
    run.say("Happened", result={"text": "paid"})
    for other in ({"result": {"text": "not paid"}}, {}):
        refused = run.say("Happened", **other)
        assert (refused.code, refused.json["reason"]) == (409, "IdempotencyKeyConflict")
        assert "requestKey" in refused.json["message"]
    refused = run.say("DidNotHappen")
    assert refused.json["reason"] == "IdempotencyKeyConflict"


@pytest.mark.req("NODQ-55", "INV-09")
def test_who_comes_second_learns_who_resolved_it_and_when() -> None:
    run = Parked()
    at = run.rest.world.clock.now().isoformat(timespec="milliseconds")[:19]
    run.say("Happened", result={"text": "paid"})
    for moment in ("before the line has looked", "after the end"):
        refused = run.say("DidNotHappen", request="k2")
        assert (refused.code, refused.json["reason"]) == (409, "Conflict"), moment
        message = refused.json["message"]
        assert "'test'" in message
        assert at in message
        assert "Happened" in message
        run.settle()
    assert run.behaved == ["pay --amount 5"]


@pytest.mark.req("NODQ-55")
def test_a_run_of_the_same_name_has_keys_of_its_own() -> None:
    run = Parked()
    run.say("Happened")
    run.rest.call("DELETE", run.run)
    run.settle()
    run.behaved.clear()
    assert run.rest.run().code == 201
    run.settle()
    assert run.status["reason"] == "NeedsResolution"
    assert run.say("DidNotHappen").code == 202


@pytest.mark.req("NODQ-55")
def test_a_key_that_is_a_day_old_is_forgotten_and_the_resolution_is_not() -> None:
    run = Parked()
    run.say("Happened")
    run.settle()
    run.rest.world.clock.advance(25 * 3600)
    refused = run.say("Happened")
    assert (refused.code, refused.json["reason"]) == (409, "Conflict")
    assert "resolved by" in refused.json["message"]


# --- races ---


@pytest.mark.req("NODQ-55", "NOD-091", "NOD-045")
def test_cancel_and_resolve_whoever_comes_first_wins() -> None:
    run = Parked()
    run.rest.post(f"{run.run}/cancel")
    refused = run.say("DidNotHappen")
    assert (refused.code, refused.json["reason"]) == (409, "Conflict")
    assert "Cancelled" in refused.json["message"]
    run.settle()
    assert run.status["phase"] == "Cancelled"
    assert run.step()["state"] == "Uncertain"  # what is not known stays so
    assert run.behaved == ["pay --amount 5"]
    refused = run.say("Happened")
    assert (refused.code, refused.json["reason"]) == (409, "Conflict")


@pytest.mark.req("NODQ-55", "NOD-045")
@pytest.mark.parametrize(
    ("outcome", "state", "code"), [("Happened", "Completed", 0), ("DidNotHappen", "Cancelled", None)]
)
def test_what_was_said_before_the_cancel_stays_said(outcome: str, state: str, code: int | None) -> None:
    run = Parked()
    result = {"result": {"text": "paid", "exitCode": 0}} if outcome == "Happened" else {}
    run.say(outcome, **result)
    run.rest.post(f"{run.run}/cancel")
    run.settle()
    assert run.status["phase"] == "Cancelled"
    assert run.behaved == ["pay --amount 5"]
    assert (run.step()["state"], run.step().get("exitCode")) == (state, code)
    assert run.step()["resolution"]["outcome"] == outcome


@pytest.mark.req("NODQ-55", "INV-12")
def test_a_resolution_whose_kick_is_lost_is_found_by_the_sweeper() -> None:
    run = Parked()
    kicks = run.rest.world.kicks
    kick = kicks.kick
    object.__setattr__(kicks, "kick", lambda conversation, **more: False)
    run.say("DidNotHappen")
    object.__setattr__(kicks, "kick", kick)
    run.rest.world.executions.waiting.clear()
    run.settle()
    assert run.status["phase"] == "Succeeded"


# --- bad input ---

BAD: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({}, "step"),
    "no step": ({"outcome": "Happened", "requestKey": "k"}, "step"),
    "a blank step": ({"step": " ", "outcome": "Happened", "requestKey": "k"}, "step"),
    "a number for a step": ({"step": 1, "outcome": "Happened", "requestKey": "k"}, "step"),
    "another outcome": ({"step": STEP, "outcome": "Maybe", "requestKey": "k"}, "outcome"),
    "no key": ({"step": STEP, "outcome": "Happened"}, "requestKey"),
    "a key that cannot be shown": ({"step": STEP, "outcome": "Happened", "requestKey": "k\n"}, "requestKey"),
    "an empty key": ({"step": STEP, "outcome": "Happened", "requestKey": ""}, "requestKey"),
    "an unknown field": ({"step": STEP, "outcome": "Happened", "requestKey": "k", "reslt": {}}, "reslt"),
    "an unknown field of the result": (
        {"step": STEP, "outcome": "Happened", "requestKey": "k", "result": {"code": 1}},
        "result.code",
    ),
    "a result of what did not happen": (
        {"step": STEP, "outcome": "DidNotHappen", "requestKey": "k", "result": {"text": "x"}},
        "result",
    ),
    "a code that no process has": (
        {"step": STEP, "outcome": "Happened", "requestKey": "k", "result": {"exitCode": 256}},
        "result.exitCode",
    ),
    "a code that is no number": (
        {"step": STEP, "outcome": "Happened", "requestKey": "k", "result": {"exitCode": True}},
        "result.exitCode",
    ),
    "a text for a result": (
        {"step": STEP, "outcome": "Happened", "requestKey": "k", "result": "paid"},
        "result",
    ),
}


@pytest.mark.req("NODQ-55", "NODQ-61")
@pytest.mark.parametrize("what", BAD)
def test_a_body_that_says_nothing_certain_is_refused_and_stores_nothing(what: str) -> None:
    run = Parked()
    body, named = BAD[what]
    commits = run.rest.commits
    refused = run.rest.post(f"{run.run}/resolution", body)
    assert (refused.code, refused.json["reason"]) == (422, "Invalid")
    assert named in refused.fields
    assert run.rest.commits == commits


@pytest.mark.req("NODQ-55", "NOD-589", "NOD-590")
def test_limits_of_text_and_key_are_exact() -> None:
    run = Parked()
    large = run.say("Happened", result={"text": "é" * 131_073})
    assert (large.code, large.json["reason"], large.fields) == (413, "PayloadTooLarge", ["result.text"])
    keyed = run.say("Happened", request="é" * 65, result={"text": "x"})
    assert (keyed.code, keyed.json["reason"], keyed.fields) == (422, "Invalid", ["requestKey"])
    assert run.status["reason"] == "NeedsResolution"
    assert run.say("Happened", request="é" * 64, result={"text": "é" * 131_072}).code == 202
    run.settle()
    (heard,) = run.heard()
    assert heard.startswith("é" * 131_072)
    assert run.status["phase"] == "Succeeded"


@pytest.mark.req("NODQ-55")
def test_only_a_step_of_unknown_outcome_is_resolved() -> None:
    run = Parked()
    commits = run.rest.commits
    for step, code, says_ in (
        ("turn-1.tool.run_command.9", 404, "has no step"),
        ("turn-7.model.1", 404, "has no step"),
        ("\x1b[2J", 404, "has no step"),
        ("turn-1.model.1", 409, "Completed"),
        ("sandbox", 409, "Completed"),
    ):
        refused = run.say("Happened", step)
        assert refused.code == code, step
        assert says_ in refused.json["message"]
    assert run.rest.commits == commits
    nobody = run.rest.post(
        "agentruns/nobody/resolution", {"step": "a", "outcome": "Happened", "requestKey": "k"}
    )
    assert (nobody.code, nobody.json["reason"]) == (404, "NotFound")
    wrong_kind = run.say("Happened", kind="text/plain")
    assert wrong_kind.code == 415


def test_only_a_command_has_an_exit_code() -> None:
    run = Parked(WRITE)
    step = "turn-1.tool.write_file.1"
    refused = run.say("Happened", step, result={"exitCode": 0})
    assert (refused.code, refused.fields) == (422, ["result.exitCode"])
    assert run.say("Happened", step, result={"text": "written"}).code == 202
    run.settle()
    assert run.status["phase"] == "Succeeded"


@pytest.mark.req("NODQ-55", "NOD-004", "NOD-467")
def test_who_may_only_read_resolves_nothing() -> None:
    run = Parked()
    reader = run.rest.new_key(permissions=("agentruns:read",))
    elsewhere = run.rest.new_key(projects=("lab",))
    run.rest.directory.create_organization("other")
    run.rest.directory.create_project("other", "web")
    foreign = run.rest.new_key("other")
    codes = [run.say("Happened", key=key).code for key in (reader, elsewhere, foreign)]
    assert codes == [403, 403, 404]
    assert run.status["reason"] == "NeedsResolution"


def test_the_bodies_of_agents_are_no_resolutions() -> None:
    run = Parked()
    refused = run.rest.post(f"{run.run}/resolution", manifest("Agent", "a", {}))
    assert refused.code == 422
