"""Calls with the user's own key: made at most once, at no charge of Nodus, and never guessed at."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from nodus_core.access.door import Place
from nodus_core.conversations.context import Context, ModelChoice
from nodus_core.conversations.ports import Directive
from nodus_core.conversations.secrets import Secrets
from nodus_core.conversations.shelf import Shelf
from nodus_core.conversations.worker import Worker
from nodus_core.inference import ModelOutcomeUnknown, ModelRefusedRequest, ModelUnavailable, Usage
from nodus_core.inference.exchange import ModelRequest
from nodus_core.inference.target import OwnKey
from nodus_core.journal.vault import VaultPlace
from nodus_core.kernel.errors import RetryableError
from nodus_core.kernel.states import Guarantee, TaskState
from nodus_core.kernel.tasks import Task
from nodus_core.resources.manifest import Manifest
from nodus_core.resources.metadata import Metadata
from nodus_core.testing.crash import CrashOnce
from nodus_core.testing.memory_vault import MemoryVault
from nodus_core.testing.scripted_model import Step, plays, says
from nodus_core.testing.world import NAMES, World

KEY = "sk-plum-9f31-KITE-77aa"
PLACE = Place("acme", "web", "alice")
OWN = ModelChoice("BYOK", "claude-sonnet-5-5", own_key=OwnKey("anthropic-key"))
COMMAND = ("run_command", {"command": "ls"})


def world_of(*steps: Step, crash: CrashOnce | None = None, vault: MemoryVault | None = None) -> World:
    return World(plays(steps), crash=crash, vault=vault)


def keep(world: World, **data: str) -> Secrets:
    secrets = Secrets(Shelf(world.outside, world.payloads, world.clock), world.ids, vault=world.vault)
    secrets.apply(
        PLACE, Manifest("Secret", Metadata("anthropic-key"), {"data": data or {"ANTHROPIC_API_KEY": KEY}})
    )
    return secrets


def start(world: World, choice: ModelChoice = OWN, cap: str = "1.00") -> None:
    world.admit(cap=cap, context=Context("agent", 1, "You are careful.", choice))


def status(world: World) -> dict[str, Any]:
    obj = world.outside.object(NAMES)
    assert obj is not None
    return obj.status


def rounds(world: World) -> list[Task]:
    return [task for task in world.outside.all_tasks("conv-1") if task.key.startswith("r") and not task.tool]


@pytest.mark.req("NOD-109", "NOD-064", "NOD-119", "NOD-120", "NOD-121", "NEX-43")
def test_a_run_with_an_own_key_is_not_routed_costs_nothing_and_counts_its_tokens() -> None:
    world = world_of(says("look", COMMAND, usage=Usage(900, 4000)), says("done", usage=Usage(7, 3)))
    keep(world)
    start(world, cap="0.000001")
    world.settle()
    shown = status(world)
    assert (shown["phase"], shown["cost"]["totalUSD"]) == ("Succeeded", "0")
    (turn,) = shown["turns"]
    assert (turn["model"], turn["chosenBy"]) == ("claude-sonnet-5-5", "configured")
    assert turn["usage"] == {"inputTokens": 907, "outputTokens": 4003}
    assert turn["costUSD"] == "0"
    assert world.models.routings == []
    assert world.models.keys == [KEY, KEY]
    assert [(task.guarantee, task.reserved, task.cost) for task in rounds(world)] == [
        (Guarantee.AT_MOST_ONCE, Decimal(0), Decimal(0))
    ] * 2


@pytest.mark.req("NOD-086", "NOD-123", "NOD-090")
def test_a_call_that_was_cut_off_after_it_was_sent_parks_the_run_and_is_not_repeated() -> None:
    world = world_of(ModelOutcomeUnknown("api.example.com gave no whole answer"))
    keep(world)
    start(world)
    world.settle()
    shown = status(world)
    assert (shown["phase"], shown["reason"]) == ("Waiting", "NeedsResolution")
    assert [entry["step"] for entry in shown["unresolved"]] == ["turn-1.model.1"]
    (task,) = rounds(world)
    assert (task.state, task.attempt) == (TaskState.UNCERTAIN, 1)
    world.clock.advance(600)
    for _ in range(3):
        world.kicks.kick("conv")
        world.settle()
    assert len(world.models.requests) == 1
    assert status(world) == shown


@pytest.mark.req("NOD-091")
def test_a_parked_run_can_be_cancelled() -> None:
    world = world_of(ModelOutcomeUnknown("cut"))
    keep(world)
    start(world)
    world.settle()
    world.stop()
    world.kicks.kick("conv")
    world.settle()
    assert status(world)["phase"] == "Cancelled"


def passings(point: str) -> int:
    seen = CrashOnce()
    world = world_of(says("look", COMMAND), says("done"), crash=seen)
    keep(world)
    start(world)
    world.settle()
    return seen.passed.count(point)


@pytest.mark.req("NOD-086", "NOD-123")
@pytest.mark.parametrize(
    "point", ["claim.after", "record.before", "record.after", "take.after", "rest.before"]
)
def test_a_worker_that_dies_never_makes_a_call_twice(point: str) -> None:
    """Either the call was certainly not made, and the run goes on; or it may have been, and the run is parked."""
    for passing in range(1, passings(point) + 1):
        world = world_of(says("look", COMMAND), says("done"), crash=CrashOnce(point, passing))
        keep(world)
        start(world)
        world.settle()
        assert world.crashes == 1
        asked = [len(request.messages) for request in world.models.requests]
        assert len(asked) == len(set(asked)), (point, passing)
        shown = status(world)
        unknown = [task for task in rounds(world) if task.state is TaskState.UNCERTAIN]
        assert (shown["phase"] == "Succeeded") is (not unknown)
        assert (shown.get("reason") == "NeedsResolution") is bool(unknown)
        assert not any(task.resent for task in rounds(world))


def test_a_worker_without_time_for_a_call_leaves_it_to_the_next_one_unclaimed() -> None:
    world = world_of(says("look", COMMAND), says("done"))
    keep(world)
    start(world)
    directive = Directive("again")
    seconds = iter([900.0, 340.0, 200.0, 900.0, 200.0, 900.0, 900.0])
    world.executions.waiting.clear()
    left = {"of": 0.0}

    def remaining() -> float:
        # Each look at the clock costs this invocation ten seconds: its time is over soon after it has begun.
        left["of"] -= 10
        return left["of"]

    while directive.next == "again":
        left["of"] = next(seconds, 900.0)
        directive = Worker(world.ports).advance("conv", 1, remaining)
    world.settle()
    assert status(world)["phase"] == "Succeeded"
    assert len(world.models.requests) == 2


@pytest.mark.req("FLD-04")
def test_what_certainly_was_not_made_is_tried_again() -> None:
    steps = iter([ModelUnavailable("refused"), ModelUnavailable("429", 2.0), says("done")])

    def script(request: ModelRequest, number: int) -> Step:
        return next(steps)

    world = World(script)
    keep(world)
    start(world)
    world.settle()
    assert status(world)["phase"] == "Succeeded"
    (task,) = rounds(world)
    assert (task.attempt, task.resent) == (3, 0)


def test_a_refusal_fails_the_turn_with_the_providers_reason() -> None:
    world = world_of(ModelRefusedRequest("api.anthropic.com answered HTTP 401: check the key", 401))
    keep(world)
    start(world)
    world.settle()
    shown = status(world)
    assert (shown["phase"], shown["reason"]) == ("Failed", "ModelRequestRefused")
    assert "HTTP 401" in shown["message"]


def test_a_changed_key_counts_at_the_next_call() -> None:
    world = World(lambda request, number: AssertionError())
    secrets = keep(world)

    def script(request: ModelRequest, number: int) -> Step:
        data = {"data": {"ANTHROPIC_API_KEY": "sk-another-key"}}
        secrets.apply(PLACE, Manifest("Secret", Metadata("anthropic-key"), data))
        return says("done") if number else says("look", COMMAND)

    world.models.script = script
    start(world)
    world.settle()
    assert world.models.keys == [KEY, "sk-another-key"]


@pytest.mark.req("NOD-114", "FLD-14")
@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"A": KEY, "B": KEY}, "no ANTHROPIC_API_KEY"),
        ({"ANTHROPIC_API_KEY": f"{KEY}\nX-Other: 1"}, "without line breaks"),
        ({"ANTHROPIC_API_KEY": f"{KEY}ü"}, "ASCII"),
        ({"ANTHROPIC_API_KEY": f"{KEY} {KEY}"}, "one word"),
        ({"ANTHROPIC_API_KEY": " \n"}, "is no key"),
    ],
)
def test_a_secret_without_a_usable_key_fails_the_turn_and_is_not_repeated(
    data: dict[str, str], words: str
) -> None:
    world = world_of()
    keep(world, **data)
    start(world)
    world.settle()
    shown = status(world)
    assert (shown["phase"], shown["reason"]) == ("Failed", "ApiKeyUnusable")
    assert words in shown["message"]
    assert world.models.requests == []
    rows = [row for pk in ("conv#conv", "run#conv-1") for row in world.store.query(pk).rows]
    assert rows
    assert KEY not in repr(rows) + repr(world.payloads.objects)


def test_white_space_around_a_key_is_no_part_of_it() -> None:
    world = world_of(says("done"))
    keep(world, ANTHROPIC_API_KEY=f" {KEY}\r\n")
    start(world)
    world.settle()
    assert world.models.keys == [KEY]


@pytest.mark.parametrize(
    "drop",
    [
        lambda world, secrets: secrets.delete(PLACE, "anthropic-key"),
        lambda world, secrets: world.vault.places.clear(),
    ],
)
def test_a_secret_that_is_gone_by_then_fails_the_turn(drop: Callable[[World, Secrets], object]) -> None:
    world = world_of()
    secrets = keep(world)
    start(world)
    drop(world, secrets)
    world.settle()
    shown = status(world)
    assert (shown["phase"], shown["reason"]) == ("Failed", "ApiKeyUnusable")
    assert "anthropic-key" in shown["message"]


class BusyVault(MemoryVault):
    """Does not answer the first reads."""

    reads = 2

    def read(self, place: VaultPlace, version: str) -> Any:
        self.reads -= 1
        if self.reads >= 0:
            raise RetryableError("throttled")
        return super().read(place, version)


def test_a_vault_that_is_busy_is_asked_again_and_the_call_is_made_once() -> None:
    world = world_of(says("done"), vault=BusyVault())
    keep(world)
    start(world)
    world.settle()
    assert status(world)["phase"] == "Succeeded"
    assert len(world.models.requests) == 1


@pytest.mark.req("FLD-13")
def test_an_address_that_an_older_release_took_is_refused_when_the_call_is_due() -> None:
    world = world_of()
    keep(world)
    inward = replace(OWN, own_key=OwnKey("anthropic-key", base_url="https://169.254.169.254/v1"))
    start(world, inward)
    world.settle()
    shown = status(world)
    assert (shown["phase"], shown["reason"]) == ("Failed", "ApiKeyUnusable")
    assert "spec.model.baseURL" in shown["message"]
    assert "169.254" not in shown["message"]
