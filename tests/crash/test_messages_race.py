"""A message posted at every moment of a run's life: it gets exactly one turn, or it was refused (FLD-12, INV-50)."""

import pytest
from nodus_core.kernel.errors import Refusal
from nodus_core.kernel.states import InputState
from nodus_core.testing.crash import Crash, CrashOnce
from nodus_core.testing.scripted_model import plays, says
from nodus_core.testing.scripted_sandbox import exited
from nodus_core.testing.world import NAMES, World
from scenarios import LOOK


class Moment:
    """Crash points at which, after so many, something happens once instead of a crash."""

    def __init__(self, number: int) -> None:
        self.left = number
        self.act = lambda: None

    def reach(self, point: str) -> None:
        if point.startswith("renew"):
            return
        self.left -= 1
        if self.left == 0:
            self.act()


def answering(moment: Moment | CrashOnce, *, keep_alive: bool) -> World:
    world = World(plays([LOOK, says("done")]), lambda kind, request: exited("out\n"), crash=moment)
    world.admit(keep_alive=keep_alive)
    return world


def life(*, keep_alive: bool) -> int:
    """Commit points of a run that nobody disturbs."""
    points = CrashOnce()
    answering(points, keep_alive=keep_alive).settle()
    return len(points.passings(without="renew"))


@pytest.mark.req("FLD-12", "NOD-181", "NOD-182", "NOD-180", "INV-50")
@pytest.mark.parametrize("keep_alive", [False, True])
def test_a_message_at_any_moment_gets_one_turn_or_is_refused(keep_alive: bool) -> None:
    told: list[bool] = []
    for number in range(1, life(keep_alive=keep_alive) + 1):
        moment = Moment(number)
        world = answering(moment, keep_alive=keep_alive)
        accepted: list[int] = []

        def post(world: World = world, accepted: list[int] = accepted) -> None:
            try:
                accepted.append(world.say("And now?").turn)
                accepted.append(world.say("And now?").turn)
            except Refusal as refused:
                accepted.append(0)
                if refused.reason != "AgentRunFinished":
                    raise

        moment.act = post
        world.settle()
        obj = world.outside.object(NAMES)
        assert obj is not None
        prompts = [turn["prompt"] for turn in obj.status["turns"]]
        entries = world.outside.inputs_of("conv", after=0, limit=9)
        if accepted == [2, 2]:
            assert prompts == ["Do it.", "And now?"], f"at commit point {number}"
            assert obj.status["answer"]["turn"] == 2
        else:
            assert accepted == [0]
            assert prompts == ["Do it."], f"at commit point {number}"
        assert [entry.state for entry in entries] == [InputState.OPENED] * len(prompts)
        assert "undelivered" not in obj.status
        told.append(accepted == [2, 2])
    assert told[0]
    assert all(told) is keep_alive  # the others came too late


@pytest.mark.req("NOD-180", "NOD-189", "FLD-12")
@pytest.mark.parametrize("point", ["accept-input.before", "accept-input.after", "kick.before", "kick.after"])
def test_a_sender_whose_server_dies_sends_again_and_is_told_once(point: str) -> None:
    world = answering(CrashOnce(), keep_alive=True)
    world.settle()
    plain, world.outside = world.outside, type(world.outside)(world.store, world.ids, CrashOnce(point))
    with pytest.raises(Crash):
        world.say("And now?")
    world.outside = plain
    assert world.say("And now?").turn == 2
    assert world.say("And now?").replayed
    world.settle()
    obj = world.outside.object(NAMES)
    assert obj is not None
    assert [turn["prompt"] for turn in obj.status["turns"]] == ["Do it.", "And now?"]
    assert len(world.models.requests) == 4
