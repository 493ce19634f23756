"""How a run may end, and what must then be true of everything that it leaves (INV-10, INV-16, INV-52)."""

from collections import Counter
from typing import Any

from nodus_core.conversations.unresolved import unresolved
from nodus_core.journal.codec import from_row
from nodus_core.journal.journal import Journal
from nodus_core.journal.keys import conversation_partition
from nodus_core.kernel import ids, projection
from nodus_core.kernel.decide import MOST_SANDBOXES
from nodus_core.kernel.money import ZERO
from nodus_core.kernel.objects import Conversation, Object, Turn
from nodus_core.kernel.sandboxes import Command
from nodus_core.kernel.states import (
    FINAL_TASKS,
    CommandState,
    InputState,
    RunState,
    SandboxState,
    Statement,
    TaskState,
    TurnState,
)
from nodus_core.kernel.text import Inline
from nodus_core.testing.world import NAMES

from tests.property.turmoil import LINE, Turmoil

HELD = {"NeedsResolution", "MaxCostReached", "BudgetBlocked", "MessageWait"}
"""Words for what only a person can move on."""

STOPS = {"Cancelled": "Cancelled", "DeadlineExceeded": "Failed"}
"""The phase in which a run ends that was stopped for a reason."""


def reader(world: Turmoil) -> Journal:
    """The journal without faults and crash points."""
    return Journal(world.watched, world.ids)


def read(world: Turmoil) -> tuple[Conversation, Object]:
    head, obj = reader(world).conversation(LINE), reader(world).object(NAMES)
    assert head is not None
    assert obj is not None
    return head, obj


def check_money(world: Turmoil) -> None:
    """At rest only a sandbox that is kept open holds money, and what was spent is booked to the last digit."""
    head = read(world)[0]
    rooms = [reader(world).sandbox(f"{LINE}-s{ordinal}") for ordinal in range(1, head.sandboxes + 1)]
    meters = [room.meter for room in rooms if room is not None and room.meter is not None]
    assert len(meters) == head.sandboxes
    assert [meter.closed for meter in meters[:-1]] == [True] * (len(meters) - 1 if meters else 0)
    compute = sum((meter.booked for meter in meters if meter.closed), ZERO)
    assert head.compute == compute
    for account in reader(world).accounts.payers(NAMES.org, NAMES.project):
        spent = [
            run.spent
            for number in range(1, read(world)[0].opened + 1)
            if (run := reader(world).run(f"{LINE}-{number}")) is not None
        ]
        assert account.models == sum(spent, ZERO)
        assert account.held == sum((meter.held for meter in meters), ZERO)
        assert account.compute == sum((meter.booked for meter in meters), ZERO)


def check_rest(world: Turmoil) -> None:
    """At rest a run is final, or held for something that its status names; each effect happened once at most."""
    head, obj = read(world)
    assert head.line.claimant is head.line.lease_until is None
    if head.ended:
        _check_final(world, head, obj)
    else:
        assert head.deadline is None, "no run outlives its deadline"
        assert (obj.status["phase"], obj.status["reason"] in HELD) == ("Waiting", True)
        _check_held(world, head, obj)
    _check_effects(world, head)
    _check_inputs(world, head, obj)
    check_money(world)
    assert recomputed(reader(world), head, obj) == shown(obj.status)


def _check_effects(world: Turmoil, head: Conversation) -> None:
    """No command ran twice; what is not known of one is never shown as known (NOD-085)."""
    counts = Counter(command for _, command in world.sandboxes.effects)
    assert [command for command, count in counts.items() if count > 1] == []
    tasks = {
        f"{run}.{task.key}": task
        for run in (f"{LINE}-{number}" for number in range(1, head.opened + 1))
        for task in reader(world).all_tasks(run)
    }
    for key, row in world.watched.rows().items():
        if key.pk.startswith("sb#") and key.sk.startswith("cmd#"):
            command = from_row(Command, row)
            task = tasks[ids.command_id(*_task_of(command.id))]
            attempt = _attempt_of(command.id)
            said = {item.attempt: item.statement for item in task.resolutions}
            unknown = task.state is TaskState.UNCERTAIN and task.attempt == attempt
            assert _is_lost(command) is (unknown or attempt in said), command.id
            assert attempt == 1 or said[attempt - 1] is Statement.DID_NOT_HAPPEN, command.id
            assert command.state is not CommandState.WITHDRAWN or command.id not in counts, command.id
            assert command.state not in (CommandState.PENDING, CommandState.CLAIMED), command.id


def turns_of(journal: Journal, conversation: str) -> list[Turn]:
    """All turns that are stored, whatever the conversation's head says."""
    page = journal.store.query(conversation_partition(conversation), "turn#")
    assert page.after is None
    return [from_row(Turn, row) for row in page.rows]


def _check_inputs(world: Turmoil, head: Conversation, obj: Object) -> None:
    """What was accepted has one turn, in order, or is listed as undelivered; what was refused is nowhere (FLD-12)."""
    entries = reader(world).inputs_of(LINE, after=0, limit=1000)
    assert [entry.seq for entry in entries] == list(range(1, head.accepted + 1))
    turns = [(turn.number, turn.input) for turn in turns_of(reader(world), LINE)]
    assert turns == [(number, number) for number in range(1, head.opened + 1)]
    states = [entry.state for entry in entries]
    unread = InputState.CANCELED if head.ended else InputState.QUEUED
    assert states == [InputState.OPENED] * head.opened + [unread] * (head.accepted - head.opened)
    keys = [entry.message_key for entry in entries[1:]]
    assert {key: accepted.turn for key, accepted in world.told.items()}.items() <= {
        key: entry.seq for entry in entries[1:] if (key := entry.message_key)
    }.items()
    assert len(keys) == len(set(keys))
    assert not world.refused & set(keys)
    if head.ended:
        assert head.returned == head.accepted - head.opened
        listed = [item["messageKey"] for item in obj.status.get("undelivered", [])]
        assert listed == keys[max(head.opened - 1, 0) :]
        assert {item["reason"] for item in obj.status.get("undelivered", [])} <= {obj.status.get("reason")}


def _is_lost(command: Command) -> bool:
    """Whether nobody knows what became of it, by the sandbox's end or by its daemon's own word."""
    told = command.result.text if isinstance(command.result, Inline) else ""
    return command.state is CommandState.LOST or '"state": "lost"' in told


def _task_of(command: str) -> tuple[str, str]:
    """Run and task key of a command's id."""
    run, task, *_ = command.split(".")
    return run, task


def _attempt_of(command: str) -> int:
    _, _, *attempt = command.split(".")
    return int(attempt[0]) if attempt else 1


def _check_final(world: Turmoil, head: Conversation, obj: Object) -> None:
    assert obj.status["phase"] in projection.FINAL_PHASES
    assert head.sandbox is head.run is None
    for ordinal in range(1, head.sandboxes + 1):
        sandbox = reader(world).sandbox(f"{LINE}-s{ordinal}")
        assert sandbox is not None
        assert sandbox.state is SandboxState.GONE
    world.sandboxes.turn()  # a task that was started too late learns that nobody wants it
    assert not any(daemon.alive for daemon in world.sandboxes.daemons.values())
    for number in range(1, head.opened + 1):
        run = reader(world).run(f"{LINE}-{number}")
        assert run is not None
        assert (run.state, run.open) == (RunState.SETTLED, frozenset())
        turn = reader(world).turn(LINE, number)
        assert turn is not None
        assert turn.reason != "SandboxLost" or run.sandboxes == MOST_SANDBOXES, "given up too early"
    if head.stop is not None:
        assert (head.stop.reason, obj.status["phase"]) in STOPS.items()
    if head.stop is not None and head.stop.reason == "DeadlineExceeded":
        assert head.deadline is not None
        assert head.stop.at >= head.deadline


def _check_held(world: Turmoil, head: Conversation, obj: Object) -> None:
    reason = obj.status["reason"]
    if reason == "MessageWait":
        assert head.run is None
        assert head.opened == head.accepted
        assert head.keep_alive
        return
    run = reader(world).run(head.run or "")
    assert run is not None
    uncertain = {
        task.key: task for task in reader(world).all_tasks(run.uid) if task.state is TaskState.UNCERTAIN
    }
    assert run.open == set(uncertain)
    unsaid = {key for key, task in uncertain.items() if task.resolution is None}
    assert unsaid == {item.task for item in run.attention}
    assert bool(uncertain) is (reason == "NeedsResolution") is (run.state is RunState.NEEDS_ATTENTION)
    assert obj.status.get("unresolved", []) == unresolved(reader(world), run)[: projection.MOST_UNRESOLVED]


def shown(status: dict[str, Any]) -> dict[str, Any]:
    """What of a status follows from the journal: all but the wording, and moments of its own."""
    kept = ("phase", "reason", "turns", "answer", "cost", "attempts")
    return {name: status[name] for name in kept if name in status}


def recomputed(journal: Journal, head: Conversation, obj: Object) -> dict[str, Any]:
    """The status from the journal alone, by rules written down a second time (INV-52)."""
    turns = turns_of(journal, head.id)
    answers = [turn for turn in turns if turn.state is TurnState.COMPLETED and turn.answer is not None]
    spent = sum((turn.cost or ZERO for turn in turns if turn.state is not TurnState.OPEN), ZERO)
    status: dict[str, Any] = {
        "turns": [projection.turn_entry(turn) for turn in turns],
        "cost": {
            "totalUSD": projection.dollars(spent),
            "limitUSD": projection.dollars(head.cap),
            "computeUSD": projection.dollars(head.compute),
        },
        "attempts": head.attempts,
        **_word(journal, head, obj),
    }
    if answers:
        answer = answers[-1].answer
        assert answer is not None
        status["answer"] = {"preview": projection.preview(answer), "turn": answers[-1].number}
    return status


def _word(journal: Journal, head: Conversation, obj: Object) -> dict[str, str]:
    turns = turns_of(journal, head.id)
    if head.ended and head.stop is not None:
        return {"phase": STOPS[head.stop.reason], "reason": head.stop.reason}
    if head.ended:
        last = turns[-1]
        word = {"phase": {TurnState.COMPLETED: "Succeeded", TurnState.FAILED: "Failed"}[last.state]}
        return {**word, "reason": last.reason} if last.reason else word
    if head.run is None:
        return {"phase": "Waiting", "reason": "MessageWait"}
    run = journal.run(head.run)
    held = run is not None and run.state is RunState.NEEDS_ATTENTION
    waits = run is not None and run.purse is not None and run.purse.waits is not None
    word = "BudgetBlocked" if waits else "MaxCostReached"
    return {"phase": "Waiting", "reason": "NeedsResolution" if held else word}


def outcome(world: Turmoil) -> dict[str, Any]:
    """What must be the same whenever nobody stopped the run, nothing died in a sandbox, and no call gave up."""
    head, obj = read(world)
    tasks = {
        (number, task.key): (task.state, task.result, task.cost)
        for number in range(1, head.opened + 1)
        for task in reader(world).all_tasks(f"{LINE}-{number}")
        if task.state in FINAL_TASKS
    }
    return {
        "phase": obj.status["phase"],
        "reason": obj.status.get("reason"),
        "answer": obj.status.get("answer"),
        "cost": {name: obj.status["cost"][name] for name in ("totalUSD", "limitUSD")},
        "tasks": tasks,
        "effects": Counter(world.sandboxes.effects),
    }
