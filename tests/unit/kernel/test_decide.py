"""Every decision of a line, each with the position that leads to it; the same position gives the same one."""

from dataclasses import replace
from decimal import Decimal

import pytest
from nodus_core.kernel import decisions as to
from nodus_core.kernel.decide import Plan, View, decide
from nodus_core.kernel.decisions import Decision
from nodus_core.kernel.money import Meter
from nodus_core.kernel.objects import Attention, Conversation, Run
from nodus_core.kernel.saving import Save, Saving
from nodus_core.kernel.states import RunState, SandboxState, TaskState, TurnState
from nodus_core.kernel.tasks import Result

from tests.unit.kernel.views import NOW, SANDBOX, STOP, head, round_task, run, task, view

RUNNING, FAILED, UNCERTAIN = TaskState.RUNNING, TaskState.FAILED, TaskState.UNCERTAIN
SETUP, ROUTED = Plan(setup=True, routed=False), Plan(setup=False, routed=True)
BOTH = Plan(setup=True, routed=False, source=True)
EXPIRED = replace(STOP, reason="DeadlineExceeded")
GONE = replace(SANDBOX, state=SandboxState.GONE)
UNBOOKED = replace(GONE, meter=Meter(Decimal("0.05"), NOW))
KEPT = replace(SANDBOX, state_dir="/workspace")
LACKING = replace(KEPT, restore="000001")
SAVING = Saving("000002", SANDBOX.id, "save.000002", NOW, NOW)
SAVES = tuple(Save(name, NOW, 1, "0" * 64, 1) for name in ("000003", "000002", "000001"))
COMING = replace(SANDBOX, state=SandboxState.REQUESTED)
RELEASING = replace(SANDBOX, state=SandboxState.RELEASING)
NEVER_BEGAN = task("r1t1", FAILED, result=Result(error="SandboxGone"))
ATTENTION = (Attention("r1t0", "SandboxLost", NOW),)


def failed(reason: str, *, ends: bool = True) -> to.FinishTurn:
    return to.FinishTurn(TurnState.FAILED, ends, reason)


def held(*opened: str, **more: object) -> Run:
    """A run of which a person is asked what became of its first open task."""
    values = {"state": RunState.NEEDS_ATTENTION, "attention": ATTENTION, "open": frozenset(opened)}
    return run(**values, **more)


def calls(*indexes: int, of: int) -> tuple[object, ...]:
    return tuple(round_task(1, of).calls[index] for index in indexes)


def machine(**more: object) -> Conversation:
    return head(kind="machine", accepted=0, opened=0, **more)


POSITIONS: dict[str, tuple[View, Decision]] = {
    # --- between turns ---
    "an input waits": (view(conversation=head(opened=0, sandbox=None), run=None), to.OpenTurn(1)),
    "a second input waits": (view(conversation=head(accepted=2), run=None), to.OpenTurn(2)),
    "every input has its turn": (view(conversation=head(keep_alive=True), run=None), to.Rest("MessageWait")),
    "stopped between turns": (view(conversation=head(stop=STOP), run=None), to.End()),
    "stopped with an input unread": (view(conversation=head(accepted=2, stop=STOP), run=None), to.End()),
    # --- its saved folder ---
    "nobody writes to it": (
        view(conversation=head(keep_alive=True), run=None, sandbox=KEPT, idle=True),
        to.BeginSave("Idle"),
    ),
    "nobody writes to it until now": (
        view(conversation=head(accepted=2), run=None, sandbox=KEPT, idle=True),
        to.OpenTurn(2),
    ),
    "its folder is to be saved": (
        view(round_task(1), run=run(rounds=1), checkpoint=True),
        to.BeginSave(None),
    ),
    "its folder is to be saved, and a command is at work": (
        view(
            round_task(1, 1),
            task("r1t0", RUNNING),
            run=run(rounds=1, open=frozenset({"r1t0"})),
            checkpoint=True,
        ),
        to.Watch((task("r1t0", RUNNING),)),
    ),
    "its folder is being saved": (
        view(round_task(1), run=run(rounds=1), conversation=head(saving=SAVING)),
        to.FollowSave(),
    ),
    "more was saved than is kept": (
        view(round_task(1), run=run(rounds=1), conversation=head(saves=SAVES, unkept=("000000",))),
        to.DropSaves(("000000", "000001")),
    ),
    "ended, and its folder was saved": (
        view(
            conversation=head(ended=True, sandbox=None, saves=SAVES[:1], saving=SAVING),
            run=None,
            sandbox=None,
        ),
        to.DropSaves(("000003", "000002")),
    ),
    "a sandbox has taken up its folder": (
        view(task("sandbox", result=Result()), run=run(sandboxes=1), plan=SETUP),
        to.Ask(1, None),
    ),
    "a machine's folder is being saved": (
        view(conversation=machine(saving=SAVING, paused="Stopped"), run=None, sandbox=KEPT),
        to.FollowSave(),
    ),
    "a machine is to stand still, and its folder is saved": (
        view(conversation=machine(paused="Stopped"), run=None, sandbox=KEPT),
        to.BeginSave("Stopped"),
    ),
    "a machine is to stand still before its folder is there": (
        view(conversation=machine(paused="Stopped"), run=None, sandbox=LACKING),
        to.Pause("Stopped"),
    ),
    "a machine has come up without its folder": (
        view(conversation=machine(), run=None, sandbox=LACKING),
        to.Launch(),
    ),
    # --- its deadline ---
    "overdue between turns": (view(conversation=head(keep_alive=True), run=None, overdue=True), to.Expire()),
    "overdue with an input unread": (
        view(conversation=head(accepted=2), run=None, overdue=True),
        to.Expire(),
    ),
    "overdue within a turn": (view(task("r1", RUNNING), run=run(rounds=1), overdue=True), to.Expire()),
    "overdue and held": (
        view(run=run(state=RunState.NEEDS_ATTENTION, attention=ATTENTION), overdue=True),
        to.Expire(),
    ),
    "stopped at its deadline": (
        view(conversation=head(stop=EXPIRED), run=run()),
        to.FinishTurn(TurnState.FAILED, True, "DeadlineExceeded"),
    ),
    "stopped at its deadline with work open": (
        view(task("r1", RUNNING), conversation=head(stop=EXPIRED), run=run(open=frozenset({"r1"}))),
        to.Cut(("r1",)),
    ),
    # --- its sandbox's time ---
    "its sandbox is gone and not booked": (
        view(sandbox=UNBOOKED, run=run(rounds=1)),
        to.BookSandbox(UNBOOKED),
    ),
    "ended, and its sandbox is not booked": (
        view(conversation=head(ended=True), run=None, sandbox=UNBOOKED),
        to.BookSandbox(UNBOOKED),
    ),
    "its sandbox's next period is due": (view(task("r1", RUNNING), unpaid=True), to.ExtendSandbox()),
    "its sandbox's next period is due between turns": (
        view(conversation=head(keep_alive=True), run=None, unpaid=True),
        to.ExtendSandbox(),
    ),
    "its sandbox is let go for want of money": (view(sandbox=RELEASING), to.LetGo(RELEASING)),
    "its setup was ended for want of money": (
        view(task("setup", FAILED, result=Result(error="Cancelled")), plan=SETUP, run=run(), sandbox=GONE),
        to.StartSandbox(None),
    ),
    # --- a Sandbox's own line ---
    "a machine is wanted": (view(conversation=machine(sandbox=None), run=None, sandbox=None), to.Launch()),
    "a machine comes up": (view(conversation=machine(), run=None, sandbox=COMING), to.Launch()),
    "a machine runs": (view(conversation=machine(), run=None), to.Keep()),
    "a machine's next period is due": (
        view(conversation=machine(), run=None, unpaid=True),
        to.ExtendMachine(),
    ),
    "a machine is to stand still": (view(conversation=machine(paused="Idle"), run=None), to.Pause("Idle")),
    "a machine is let go": (
        view(conversation=machine(paused="Idle"), run=None, sandbox=RELEASING),
        to.LetGo(RELEASING),
    ),
    "a machine is gone": (view(conversation=machine(), run=None, sandbox=GONE), to.Settle(GONE)),
    "a machine stands still": (
        view(conversation=machine(paused="Idle", sandbox=None), run=None, sandbox=GONE),
        to.Rest("Idle"),
    ),
    "a machine is wanted again": (
        view(conversation=machine(sandbox=None), run=None, sandbox=GONE),
        to.Launch(),
    ),
    "a machine's time has come": (view(conversation=machine(), run=None, overdue=True), to.Expire()),
    "a machine is deleted": (view(conversation=machine(stop=STOP), run=None), to.End()),
    # --- the end ---
    "ended, with a sandbox": (view(conversation=head(ended=True), run=None), to.Release("conv-s1")),
    "ended, without one": (view(conversation=head(ended=True, sandbox=None), run=None), to.Close()),
    "ended and stopped": (view(conversation=head(ended=True, stop=STOP, sandbox=None), run=None), to.Close()),
    "ended, with inputs unread": (
        view(conversation=head(ended=True, accepted=4, returned=1), run=None),
        to.ReturnUnread(),
    ),
    "ended, with every unread input returned": (
        view(conversation=head(ended=True, accepted=4, returned=3), run=None),
        to.Release("conv-s1"),
    ),
    # --- stopped within a turn ---
    "stopped with work open": (
        view(
            task("r1", RUNNING), conversation=head(stop=STOP), run=run(rounds=1, open=frozenset({"r1", "b"}))
        ),
        to.Cut(("b", "r1")),
    ),
    "stopped and joined": (
        view(conversation=head(stop=STOP), run=run()),
        to.FinishTurn(TurnState.CANCELED, True, "Cancelled"),
    ),
    "stopped while a step's outcome is not known": (
        view(task("r1t0", UNCERTAIN), conversation=head(stop=STOP), run=held("r1t0")),
        to.Cut(("r1t0",)),
    ),
    # --- preparation ---
    "no model was offered": (view(run=run(selection=None)), failed("ModelNotOffered")),
    "no sandbox yet": (view(tasks={}, sandbox=None), to.StartSandbox(None)),
    "its sandbox is starting": (
        view(task("sandbox", RUNNING), sandbox=replace(SANDBOX, state=SandboxState.REQUESTED)),
        to.StartSandbox(task("sandbox", RUNNING)),
    ),
    "its sandbox did not start": (view(task("sandbox", FAILED)), failed("SandboxStartFailed")),
    "an earlier turn's sandbox is there": (view(tasks={}, run=run(sandboxes=0)), to.Ask(1, None)),
    "an earlier turn's sandbox is gone": (
        view(tasks={}, run=run(sandboxes=0), sandbox=GONE),
        to.StartSandbox(None),
    ),
    "it is lost before the setup": (view(plan=SETUP, sandbox=GONE), to.StartSandbox(None)),
    "it is lost before the setup began": (
        view(task("setup", FAILED, result=Result(error="SandboxGone")), plan=SETUP, sandbox=GONE),
        to.StartSandbox(None),
    ),
    "it is lost before the first round": (view(sandbox=GONE), to.StartSandbox(None)),
    "it is lost before the first round, as often before": (
        view(task("sandbox4"), run=run(sandboxes=4), sandbox=GONE),
        failed("SandboxLost"),
    ),
    "it is lost within the turn, and no call waits": (
        view(round_task(1), tasks={"r1": round_task(1)}, run=run(rounds=1), sandbox=GONE),
        to.FinishTurn(TurnState.COMPLETED, True),
    ),
    "it is lost while a round was interrupted": (
        view(task("r1", RUNNING), run=run(rounds=1, open=frozenset({"r1"})), sandbox=GONE),
        to.Ask(1, task("r1", RUNNING)),
    ),
    "it is lost within the turn, and a call waits": (
        view(round_task(1, 1), run=run(rounds=1), sandbox=GONE),
        to.Place(calls(0, of=1)),  # type: ignore[arg-type]
    ),
    "it is lost within the turn, and a call was refused": (
        view(round_task(1, 2), task("r1t0"), NEVER_BEGAN, run=run(rounds=1), sandbox=GONE),
        to.StartSandbox(None),
    ),
    "its successor is starting": (
        view(round_task(1, 2), task("sandbox2", RUNNING), run=run(rounds=1, sandboxes=2), sandbox=GONE),
        to.StartSandbox(task("sandbox2", RUNNING)),
    ),
    "its successor did not start": (
        view(round_task(1, 2), task("sandbox2", FAILED), run=run(rounds=1, sandboxes=2), sandbox=GONE),
        failed("SandboxStartFailed"),
    ),
    "its successor has had no setup": (
        view(task("setup"), task("sandbox2"), plan=SETUP, run=run(sandboxes=2)),
        to.RunSetup(None),
    ),
    "its successor is there": (
        view(
            *(round_task(1, 2), task("r1t0"), NEVER_BEGAN, task("sandbox2"), task("setup2")),
            plan=SETUP,
            run=run(rounds=1, sandboxes=2),
        ),
        to.Ask(2, None),
    ),
    "its third successor is lost as well": (
        view(
            *(round_task(1, 2), task("r1t0"), NEVER_BEGAN, task("sandbox4")),
            run=run(rounds=1, sandboxes=4),
            sandbox=GONE,
        ),
        failed("SandboxLost"),
    ),
    "the source comes before the setup": (view(plan=BOTH), to.CopySource(None)),
    "the source is copied": (
        view(task("source", RUNNING), plan=BOTH),
        to.CopySource(task("source", RUNNING)),
    ),
    "the source is there": (view(task("source", TaskState.COMPLETED), plan=BOTH), to.RunSetup(None)),
    "the source could not be copied": (
        view(task("source", FAILED), plan=BOTH),
        to.FinishTurn(TurnState.FAILED, True, "SourceFailed"),
    ),
    "setup is next": (view(plan=SETUP), to.RunSetup(None)),
    "setup runs": (view(task("setup", RUNNING), plan=SETUP), to.RunSetup(task("setup", RUNNING))),
    "setup may have run": (
        view(task("setup", UNCERTAIN), plan=SETUP, run=held("setup")),
        to.Rest("NeedsResolution"),
    ),
    "a person has said whether setup ran": (
        view(task("setup", UNCERTAIN), plan=SETUP, run=run(open=frozenset({"setup"}))),
        to.Resume((task("setup", UNCERTAIN),)),
    ),
    "setup failed": (view(task("setup", FAILED), plan=SETUP), failed("SetupFailed")),
    "setup took too long": (view(task("setup", TaskState.TIMED_OUT), plan=SETUP), failed("SetupFailed")),
    "setup is done": (view(task("setup"), plan=SETUP), to.Ask(1, None)),
    "setup was an earlier turn's": (view(tasks={}, plan=SETUP, run=run(sandboxes=0)), to.Ask(1, None)),
    "routing is next": (view(plan=ROUTED, run=run(selection=None)), to.Route(None)),
    "routing was interrupted": (
        view(task("route", RUNNING), plan=ROUTED, run=run(selection=None)),
        to.Route(task("route", RUNNING)),
    ),
    "no family is offered": (view(task("route", FAILED), plan=ROUTED), failed("ModelNotOffered")),
    # --- rounds and calls ---
    "the first round": (view(), to.Ask(1, None)),
    "a round was interrupted": (
        view(task("r1", RUNNING), run=run(rounds=1, open=frozenset({"r1"}))),
        to.Ask(1, task("r1", RUNNING)),
    ),
    "a round was refused": (
        view(round_task(1, error="ModelRefused", state=FAILED), run=run(rounds=1)),
        failed("ModelRefused"),
    ),
    "a round was refused, and more may come": (
        view(
            round_task(1, error="ModelRefused", state=FAILED),
            run=run(rounds=1),
            conversation=head(accepted=2),
        ),
        failed("ModelRefused", ends=False),
    ),
    "calls run": (
        view(
            round_task(1, 2), task("r1t0"), task("r1t1", RUNNING), run=run(rounds=1, open=frozenset({"r1t1"}))
        ),
        to.Watch((task("r1t1", RUNNING),)),
    ),
    "some calls have not begun": (
        view(round_task(1, 3), task("r1t0"), run=run(rounds=1)),
        to.Place(calls(1, 2, of=3)),  # type: ignore[arg-type]
    ),
    "some have not begun, and others run": (
        view(round_task(1, 3), task("r1t0", RUNNING), run=run(rounds=1, open=frozenset({"r1t0"}))),
        to.Watch((task("r1t0", RUNNING),)),
    ),
    "some have not begun, and the sandbox is lost": (
        view(round_task(1, 3), NEVER_BEGAN, run=run(rounds=1), sandbox=GONE),
        to.Place(calls(0, 2, of=3)),  # type: ignore[arg-type]
    ),
    "the outcome of a call is not known": (
        view(round_task(1, 1), task("r1t0", UNCERTAIN), run=held("r1t0", rounds=1)),
        to.Rest("NeedsResolution"),
    ),
    "it is not known, and others still run": (
        view(
            round_task(1, 2),
            task("r1t0", UNCERTAIN),
            task("r1t1", RUNNING),
            run=held("r1t0", "r1t1", rounds=1),
        ),
        to.Watch((task("r1t1", RUNNING),)),
    ),
    "it is not known, and others have not begun": (
        view(round_task(1, 2), task("r1t0", UNCERTAIN), run=held("r1t0", rounds=1)),
        to.Rest("NeedsResolution"),
    ),
    "a person has said it of two": (
        view(
            round_task(1, 3),
            task("r1t0", UNCERTAIN),
            task("r1t1", UNCERTAIN),
            run=run(rounds=1, open=frozenset({"r1t0", "r1t1"})),
        ),
        to.Resume((task("r1t0", UNCERTAIN), task("r1t1", UNCERTAIN))),
    ),
    "a person has said it, and others still run": (
        view(
            round_task(1, 2),
            task("r1t0", UNCERTAIN),
            task("r1t1", RUNNING),
            run=run(rounds=1, open=frozenset({"r1t0", "r1t1"})),
        ),
        to.Resume((task("r1t0", UNCERTAIN),)),
    ),
    "calls have their results": (
        view(round_task(1, 2), task("r1t0"), task("r1t1", FAILED), run=run(rounds=1)),
        to.Ask(2, None),
    ),
    "a reply was cut": (view(round_task(1, error="cut"), run=run(rounds=1, cut_rounds=1)), to.Ask(2, None)),
    "two replies in a row were cut": (
        view(round_task(2, error="cut"), run=run(rounds=2, cut_rounds=2)),
        failed("OutputLimitReached"),
    ),
    "the journal is nearly full": (
        view(round_task(1, 1), task("r1t0"), run=run(rounds=1, seq=90), conversation=head(steps=9_900)),
        failed("JournalLimitReached"),
    ),
    "the journal is full and the answer is there": (
        view(round_task(1), run=run(rounds=1, seq=80), conversation=head(steps=9_900)),
        to.FinishTurn(TurnState.COMPLETED, True),
    ),
    # --- the answer ---
    "the answer": (view(round_task(1), run=run(rounds=1)), to.FinishTurn(TurnState.COMPLETED, True)),
    "the answer, and messages may come": (
        view(round_task(1), run=run(rounds=1), conversation=head(keep_alive=True)),
        to.FinishTurn(TurnState.COMPLETED, False),
    ),
    "the answer, and an input waits": (
        view(round_task(1), run=run(rounds=1), conversation=head(accepted=2)),
        to.FinishTurn(TurnState.COMPLETED, False),
    ),
}


@pytest.mark.req("NOD-045", "NOD-085", "NOD-087", "NOD-091", "NOD-163", "FLD-03", "FLD-12")
@pytest.mark.parametrize("name", POSITIONS)
def test_a_position_leads_to_its_decision(name: str) -> None:
    position, expected = POSITIONS[name]
    assert decide(position) == expected == decide(position)


def test_every_kind_of_decision_has_a_position() -> None:
    shown = {type(decision) for _, decision in POSITIONS.values()}
    assert shown == set(to.Decision.__args__)


@pytest.mark.req("INV-16")
@pytest.mark.parametrize("name", [name for name in POSITIONS if "stop" not in name])
def test_stopping_leads_towards_the_end_from_every_position(name: str) -> None:
    """No position keeps a stopped conversation asking, placing or waiting for a person."""
    position, _ = POSITIONS[name]
    stopped = decide(replace(position, conversation=replace(position.conversation, stop=STOP)))
    towards_the_end = (
        to.BookSandbox
        | to.Cut
        | to.FinishTurn
        | to.End
        | to.ReturnUnread
        | to.Release
        | to.DropSaves
        | to.Close
    )
    assert isinstance(stopped, towards_the_end)
    if isinstance(stopped, to.FinishTurn):
        assert (stopped.state, stopped.ends) == (TurnState.CANCELED, True)
