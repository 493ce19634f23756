"""The saved folder of a run: what a sandbox in the place of another one finds, and what the model is told."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from nodus_core.conversations.context import Context, ModelChoice
from nodus_core.conversations.transcript import RESUMED
from nodus_core.inference.exchange import ModelReply, ModelRequest, ToolResults, UserMessage
from nodus_core.kernel.continuity import IDLE_AFTER
from nodus_core.kernel.saving import EVERY
from nodus_core.testing.scripted_model import Step, says
from nodus_core.testing.scripted_sandbox import Daemon, exited
from nodus_core.testing.world import NAMES, World

KEPT = Context("agent", 1, "You are careful.", ModelChoice("Nodus"), state_dir="/workspace")
WITH_SETUP = replace(KEPT, setup="make deps")
CALL = says("", ("run_command", {"command": "date"}))
IDLE_S = IDLE_AFTER.total_seconds()


class Kept(World):
    """A world in which things happen while the model thinks about given rounds (from 0)."""

    def __init__(self, steps: Sequence[ModelReply], **happenings: Callable[["Kept"], None]) -> None:
        super().__init__(self._play, lambda kind, request: exited("out\n"))
        self._steps = steps
        self._happenings = {int(name.removeprefix("at_")): what for name, what in happenings.items()}

    def _play(self, request: ModelRequest, number: int) -> Step:
        if number in self._happenings:
            self._happenings.pop(number)(self)
        return self._steps[number]

    def kill(self) -> None:
        for daemon in self.sandboxes.daemons.values():
            daemon.alive = False

    def let_pass(self) -> None:
        """The model thinks for longer than lies between two checkpoints."""
        self.clock.advance(EVERY.total_seconds() + 60)

    @property
    def status(self) -> dict[str, Any]:
        obj = self.outside.object(NAMES)
        assert obj is not None
        return obj.status

    @property
    def living(self) -> list[Daemon]:
        return [daemon for daemon in self.sandboxes.daemons.values() if daemon.alive]

    @property
    def ran(self) -> list[str]:
        """Commands that ran, each time that they did."""
        return [command.rpartition(".")[2] for _, command in self.sandboxes.effects]

    def told(self, number: int) -> list[Any]:
        return list(self.models.requests[number].messages)


def in_folder(daemon: Daemon) -> list[str]:
    return [line.rpartition(".")[2] for line in daemon.folder.decode().split()]


@pytest.mark.req("NOD-168", "NODQ-64", "NOD-176", "NOD-165")
def test_a_run_that_waits_gives_its_sandbox_back_and_finds_its_folder_again() -> None:
    world = Kept([CALL, says("one"), CALL, says("two")])
    world.admit(context=WITH_SETUP, keep_alive=True)
    world.pass_time(IDLE_S - 180)
    assert (world.status["reason"], world.status["sandbox"]["phase"]) == ("MessageWait", "Running")
    world.pass_time(600)
    assert (world.status["reason"], world.status["sandbox"]["phase"]) == ("MessageWait", "Deleted")
    assert world.status["sandbox"]["lastSave"]["state"] == "Saved"
    assert world.living == []
    world.pass_time(3600)
    world.say("again")
    world.pass_time(180)
    assert (world.status["reason"], world.status["answer"]["turn"]) == ("MessageWait", 2)
    (daemon,) = world.living
    assert in_folder(daemon) == ["setup", "r1t0", "r1t0"]
    assert world.ran.count("setup") == 1, "what the setup has done in the folder is there (NOD-161)"
    prompts = [message.text for message in world.told(2) if isinstance(message, UserMessage)]
    saved_at = world.status["sandbox"]["restoredFrom"]
    restored = f"The folder /workspace is restored as it was saved at {saved_at}."
    assert prompts == ["Do it.", RESUMED.format(restored=restored), "again"]


@pytest.mark.req("NODQ-64", "NOD-176")
def test_without_a_saved_folder_the_sandbox_stays() -> None:
    world = Kept([CALL, says("one")])
    world.admit(context=replace(KEPT, state_dir=None), keep_alive=True)
    world.pass_time(10 * IDLE_S)
    assert (world.status["reason"], world.status["sandbox"]["phase"]) == ("MessageWait", "Running")
    assert len(world.living) == 1


@pytest.mark.req("NOD-171")
def test_a_lost_sandbox_is_replaced_by_one_with_the_folder_of_the_last_checkpoint() -> None:
    world = Kept(
        [CALL, CALL, CALL, CALL, says("done")],
        at_1=Kept.let_pass,
        at_3=Kept.kill,
    )
    world.admit(context=WITH_SETUP)
    world.settle()
    assert world.status["phase"] == "Succeeded"
    assert world.ran == ["setup", "r1t0", "r2t0", "r3t0"], "the refused call was not run, the setup not again"
    results = [message for message in world.told(4) if isinstance(message, ToolResults)]
    assert "The folder /workspace is restored there as it was saved last" in results[-1].results[0].text
    second = world.sandboxes.daemons["task/conv-s2"]
    assert in_folder(second) == ["setup", "r1t0", "r2t0"], "the checkpoint came before the third command"


@pytest.mark.req("NOD-173")
@pytest.mark.parametrize("end", ["answered", "cancelled"])
def test_the_end_of_the_run_is_the_end_of_its_saves(end: str) -> None:
    world = Kept([CALL, says("one"), says("two")], at_1=Kept.let_pass)
    world.admit(context=KEPT, keep_alive=end == "cancelled")
    if end == "cancelled":
        world.pass_time(300)
        assert len(world.sandboxes.archives.objects) == 1
        world.stop()
    world.settle()
    assert world.status["phase"] == ("Cancelled" if end == "cancelled" else "Succeeded")
    assert world.status["sandbox"]["lastSave"]["state"] == "Saved"
    assert world.sandboxes.archives.objects == {}
    head = world.outside.conversation("conv")
    assert head is not None
    assert (head.saves, head.saving, head.unkept) == ((), None, ())


@pytest.mark.req("NOD-169")
def test_a_sandbox_that_no_budget_pays_is_saved_before_it_is_stopped() -> None:
    world = Kept([CALL, says("one")])
    world.budget("0.013")
    world.admit(context=KEPT, keep_alive=True)
    world.pass_time(IDLE_S)
    assert world.status["sandbox"]["phase"] == "Deleted"
    assert world.status["sandbox"]["lastSave"]["state"] == "Saved"
    account = world.outside.accounts.account("budget")
    assert account is not None
    assert account.available >= 0


def test_a_message_that_comes_while_the_folder_is_saved_keeps_the_sandbox() -> None:
    said: list[str] = []

    def behaviour(kind: str, request: dict[str, Any]) -> dict[str, Any]:
        if kind == "save" and not said:
            said.append("again")
            world.say("again")
        return exited("out\n")

    world = World(lambda request, number: [CALL, says("one"), CALL, says("two")][number], behaviour)
    world.admit(context=KEPT, keep_alive=True)
    world.pass_time(IDLE_S + 300)
    assert said == ["again"]
    assert len(world.sandboxes.daemons) == 1
    obj = world.outside.object(NAMES)
    assert obj is not None
    assert obj.status["answer"]["turn"] == 2


@pytest.mark.req("NOD-169")
def test_saves_that_are_gone_are_not_waited_for() -> None:
    world = Kept([CALL, says("one"), CALL, says("two")])
    world.admit(context=KEPT, keep_alive=True)
    world.pass_time(IDLE_S + 600)
    world.sandboxes.archives.objects.clear()
    world.say("again")
    world.pass_time(600)
    assert (world.status["sandbox"]["phase"], world.status["answer"]["turn"]) == ("Running", 2)
    assert "restoredFrom" not in world.status["sandbox"]
    (daemon,) = world.living
    assert in_folder(daemon) == ["r1t0"]
