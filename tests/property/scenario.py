"""What a run does in a property test: rounds, calls, troubles; drawn by Hypothesis, played by the doubles."""

import json
from dataclasses import dataclass, replace

from hypothesis import strategies as st
from nodus_core.conversations.context import Context, ModelChoice
from nodus_core.inference.errors import ModelOutcomeUnknown, ModelUnavailable
from nodus_core.inference.exchange import ModelReply, ModelRequest
from nodus_core.inference.target import Target
from nodus_core.testing.scripted_model import ScriptedModels, Step, says, target

DEADLY = -1
FORGOTTEN = -2


@dataclass(frozen=True)
class Call:
    """A tool call: `ticks` are the daemon's looks that it lasts, `code` is its exit code; None: misused.

    With `DEADLY` ticks it takes its sandbox down; with `FORGOTTEN` ones its daemon does not know what became of it.
    """

    ticks: int = 0
    code: int | None = 0


@dataclass(frozen=True)
class Round:
    """A reply of the model; `troubles` are what its first calls come to instead."""

    calls: tuple[Call, ...] = ()
    cut: bool = False
    troubles: tuple[str, ...] = ()


@dataclass(frozen=True)
class Scenario:
    """A run: its rounds before the answer, and what it was admitted with."""

    rounds: tuple[Round, ...] = ()
    setup: bool = False
    managed: bool = True
    keep_alive: bool = False
    lifetime: float | None = None
    cap: str = "1.00"
    budget: str | None = None

    @property
    def is_deadly(self) -> bool:
        """Whether a call takes the sandbox down, so that moments decide what is known of the others."""
        return any(call.ticks == DEADLY for plan in self.rounds for call in plan.calls)

    @property
    def context(self) -> Context:
        choice = ModelChoice("Nodus") if self.managed else ModelChoice("OnDemand", "claude-sonnet")
        context = Context("agent", 1, "You are careful.", choice)
        return replace(context, setup="printf ready > ready.txt") if self.setup else context


calls = st.builds(
    Call,
    ticks=st.sampled_from([0, 0, FORGOTTEN, 1, 3, 60, DEADLY]),
    code=st.sampled_from([0, 0, 0, 3, None]),
)
rounds = st.builds(
    Round,
    calls=st.one_of(
        st.lists(calls, max_size=4).map(tuple), st.just((Call(),) * 34), st.just((Call(code=None),) * 3)
    ),
    cut=st.sampled_from([False] * 7 + [True]),
    troubles=st.lists(st.sampled_from(["busy", "away", "cut off"]), max_size=2).map(tuple),
)
scenarios = st.builds(
    Scenario,
    rounds=st.lists(rounds, max_size=4).map(tuple),
    setup=st.booleans(),
    managed=st.booleans(),
    keep_alive=st.sampled_from([False, False, True]),
    lifetime=st.sampled_from([None] * 6 + [5.0, 70.0, 900.0]),
    cap=st.sampled_from(["1.00"] * 6 + ["0.0090", "0.000001"]),
    budget=st.sampled_from([None] * 3 + ["5.00", "5.00", "0.0400", "0.0140"]),
)


class Player:
    """The script of a scenario. Each turn plays all rounds; troubles come once for each turn and round."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._troubled: dict[tuple[str, int], int] = {}

    def __call__(self, request: ModelRequest, _: int) -> Step:
        number = (
            int(request.id_prefix.split("_")[2]) - 1
        )  # messages since the prompt do not count rounds: cuts
        if number >= len(self._scenario.rounds):
            return says("The answer.")
        plan, place = self._scenario.rounds[number], (request.id_prefix, number)
        met = self._troubled.get(place, 0)
        if met < len(plan.troubles):
            self._troubled[place] = met + 1
            return _trouble(plan.troubles[met])
        return _reply(number, plan)


def _trouble(word: str) -> BaseException:
    match word:
        case "busy":
            return ModelUnavailable("busy", 2.0)
        case "away":
            return ModelUnavailable("away", 45.0, busy=True)
        case _:
            return ModelOutcomeUnknown("cut off")


def _reply(number: int, plan: Round) -> ModelReply:
    made: list[tuple[str, dict[str, object]]] = [
        (
            "run_command",
            {"command": json.dumps([index, call.ticks, call.code])} if call.code is not None else {},
        )
        for index, call in enumerate(plan.calls)
    ]
    return says(f"round {number}", *made, stop="cut" if plan.cut else None)


class Models(ScriptedModels):
    """Serves On Demand choices under their own name."""

    def target(self, choice: ModelChoice, family: str | None) -> Target:
        return target(family or "sonnet")
