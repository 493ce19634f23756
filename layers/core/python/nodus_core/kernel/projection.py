"""`status` of an AgentRun: a projection of the journal, written at lifecycle changes (docs/protocols.md §1).

Each function takes the status as it is and returns the next one; none reads anything else.
"""

from datetime import datetime
from decimal import Decimal
from typing import Any

from nodus_core.kernel.objects import Attention, Conversation, StopMarker, Turn
from nodus_core.kernel.sandboxes import Sandbox
from nodus_core.kernel.states import TurnState
from nodus_core.kernel.stopping import CANCELLED, DEADLINE_EXCEEDED, turn_state
from nodus_core.kernel.tasks import Task
from nodus_core.kernel.text import preview
from nodus_core.kernel.times import stamp

Status = dict[str, Any]

EXPIRED = "Prompts, outputs and answers are kept for 30 days after a run's end; this run's are gone."
"""`status.message` of a run whose texts are expired."""

MOST_TURNS = 100
"""Turns that stand in `status.turns`; all are in the journal (NODQ-24)."""

MOST_UNRESOLVED = 20
"""Steps that stand in `status.unresolved`; the step list shows all that are `Uncertain`."""

PENDING, RUNNING, DELETED = "Pending", "Running", "Deleted"
"""Phases of a run's sandbox (NODQ-66)."""

SOURCE_UNAVAILABLE = "SourceUnavailable"
"""Reason of a run whose repository cannot be read now."""

MODEL_UNAVAILABLE = "ModelUnavailable"
"""Reason of a run whose model's provider takes no call now, and of one that has given up on that."""

MOST_UNDELIVERED = 20
"""Messages that stand in `status.undelivered`; `undeliveredCount` says how many there are."""

_OF_A_WAIT = ("reason", "message", "unresolved", "unresolvedCount")

PHASES = {
    TurnState.COMPLETED: "Succeeded",
    TurnState.FAILED: "Failed",
    TurnState.CANCELED: "Cancelled",
}

FINAL_PHASES = frozenset(PHASES.values())


def dollars(amount: Decimal) -> str:
    """An exact amount in USD, without an exponent and without needless zeros (NOD-005)."""
    text = f"{amount:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def queued(agent_generation: int, cap: Decimal) -> Status:
    """A run that has just been admitted."""
    return {
        "phase": "Queued",
        "agentGeneration": agent_generation,
        "attempts": 0,
        "turns": [],
        "cost": {"totalUSD": "0", "limitUSD": dollars(cap), "computeUSD": "0"},
    }


def working(status: Status, turn: Turn) -> Status:
    """A turn is open."""
    return {
        **_plain(status),
        "phase": "Running",
        "startedAt": status.get("startedAt") or stamp(turn.started_at),
        "turns": _turns(status, turn),
    }


def with_sandbox(status: Status, conversation: Conversation, sandbox: Sandbox, phase: str) -> Status:
    """A sandbox is requested, or has come up."""
    return {
        **status,
        "attempts": conversation.attempts,
        "sandbox": {
            "name": sandbox.id,
            **image_of(sandbox),
            "egress": sandbox.egress,
            "phase": phase,
            **{name: value for name, value in status.get("sandbox", {}).items() if name == "lastSave"},
            **restored(sandbox),
        },
        "conditions": conditions(sandbox),
    }


def image_of(sandbox: Sandbox) -> Status:
    """What a sandbox is made of: the image as it was named, and its digest where it is one (NOD-021)."""
    return {"image": sandbox.image, **({"imageDigest": sandbox.digest} if sandbox.digest else {})}


def restored(sandbox: Sandbox) -> Status:
    """What is shown of a sandbox that has taken up a saved folder: when that was saved."""
    return {} if sandbox.restored_at is None else {"restoredFrom": stamp(sandbox.restored_at)}


def with_source(status: Status, source: Status) -> Status:
    """The run's source is fetched: it has this commit, or this archive, from now on (NOD-153)."""
    return {**status, "source": source}


def without_sandbox(status: Status) -> Status:
    """The run's sandbox is gone."""
    return {**status, "sandbox": {**status.get("sandbox", {}), "phase": DELETED}}


def computed(status: Status, compute: Decimal) -> Status:
    """What the run's sandboxes have cost: a charge of its own, beside the model's (NOD-144)."""
    return {**status, "cost": {**status.get("cost", {}), "computeUSD": dollars(compute)}}


def conditions(sandbox: Sandbox) -> list[Status]:
    """What holds of a sandbox that has come up: `Isolated`, `EgressEnforced` with what enforces it, `ImagePinned`."""
    if sandbox.isolated is None:
        return []
    guards = {"network": "Network", "seccomp": "Guard"}
    return [
        {"type": "Isolated", "status": str(sandbox.isolated)},
        {
            "type": "EgressEnforced",
            "status": str(sandbox.guard is not None),
            **({"reason": guards.get(sandbox.guard, "Guard")} if sandbox.guard else {}),
        },
        _image_condition(sandbox),
    ]


def _image_condition(sandbox: Sandbox) -> Status:
    """`ImagePinned`: whether the sandbox is a container of an image that can never change (NOD-448)."""
    if sandbox.digest:
        return {"type": "ImagePinned", "status": "True", "reason": "Digest", "message": sandbox.digest}
    message = f"There are no container images here: the machine's own tools stand for {sandbox.image}."
    return {"type": "ImagePinned", "status": "False", "reason": "MachineTools", "message": message}


def waiting(status: Status, reason: str, message: str, unresolved: list[Status] | None = None) -> Status:
    """Only something from outside moves the run on. Of many unresolved steps the first are shown, and their number."""
    entries = unresolved or []
    return {
        **_plain(status),
        "phase": "Waiting",
        "reason": reason,
        "message": message,
        **({"unresolved": entries[:MOST_UNRESOLVED]} if entries else {}),
        **({"unresolvedCount": len(entries)} if len(entries) > MOST_UNRESOLVED else {}),
    }


def held_up(status: Status, reason: str, message: str) -> Status:
    """The run cannot go on now, and will by itself."""
    return {**_plain(status), "phase": "Running", "reason": reason, "message": message}


def resumed(status: Status) -> Status:
    """The run goes on after a wait: for what nobody had to do, or for a message that has come."""
    return {**_plain(status), "phase": "Running"}


def awaits_message(status: Status) -> bool:
    """Whether a run with this status stands still until it gets a message."""
    return status.get("phase") == "Waiting" and status.get("reason") == "MessageWait"


def undelivered(status: Status, keys: list[str], count: int, reason: str) -> Status:
    """The run ended before it could read these messages (FLD-12): the keys of the first, and how many there are."""
    if not count:
        return status
    entries = [{"messageKey": key, "reason": reason} for key in keys[:MOST_UNDELIVERED]]
    more = {"undeliveredCount": count} if count > len(entries) else {}
    return {**status, "undelivered": entries, **more}


def stopping(status: Status, reason: str) -> Status:
    """Stopped, not joined yet: the run stays in its phase (NODQ-02). `reason` is that of the stop."""
    shown = {key: value for key, value in status.items() if key != "message"}  # it spoke of what was going on
    return {**shown, "reason": "Cancelling" if reason == CANCELLED else reason}


def answered(
    status: Status, conversation: Conversation, turn: Turn, now: datetime, message: str | None = None
) -> Status:
    """A turn is final; `message` says why it failed. A stopped run keeps its phase until its sandbox is gone.

    A run that goes on waits for a message, unless it has one already.
    """
    after: Status = {
        **_plain(status),
        "attempts": conversation.attempts,
        "turns": _turns(status, turn),
        "cost": {**status.get("cost", {}), "totalUSD": dollars(conversation.spent)},
    }
    if turn.answer is not None and turn.state is TurnState.COMPLETED:
        after["answer"] = {"preview": preview(turn.answer), "turn": turn.number}
    if conversation.stop is not None:
        return stopping(after, conversation.stop.reason)
    if not conversation.ended and conversation.accepted > conversation.opened:
        return {**after, "phase": "Running"}
    if not conversation.ended:
        return {**after, "phase": "Waiting", "reason": "MessageWait"}
    after["phase"] = PHASES[turn.state]
    after["finishedAt"] = stamp(now)
    if turn.reason:
        after["reason"] = turn.reason
    if message:
        after["message"] = message
    return after


def stopped(status: Status, stop: StopMarker, now: datetime) -> Status:
    """Stopping is over: everything joined, the sandbox is gone. A deadline says what it ended (NOD-178)."""
    after = {**_plain(status), "phase": PHASES[turn_state(stop)], "reason": stop.reason}
    if stop.reason == DEADLINE_EXCEEDED:
        after["message"] = "The run's deadline came before its end; nothing was begun after it."
    return {**after, "finishedAt": stamp(now)}


def expired(status: Status) -> Status:
    """The run's texts are gone: what it was, when and at what cost stays (NODQ-56)."""
    return {
        **{name: value for name, value in status.items() if name not in ("answer", "unresolved")},
        "turns": [{**entry, "prompt": ""} for entry in status.get("turns", [])],
        "message": EXPIRED,
    }


def turn_entry(turn: Turn) -> Status:
    """One entry of `status.turns` (NODQ-24)."""
    entry: Status = {
        "turn": turn.number,
        "prompt": turn.prompt,
        "phase": "Running" if turn.state is TurnState.OPEN else PHASES.get(turn.state, "Waiting"),
        "startedAt": stamp(turn.started_at),
    }
    if turn.reason:
        entry["reason"] = turn.reason
    if turn.model:
        entry["model"] = turn.model
    if turn.chosen_by:
        entry["chosenBy"] = turn.chosen_by
    if turn.cost is not None:
        entry["costUSD"] = dollars(turn.cost)
    if turn.usage:
        entry["usage"] = usage_entry(turn.usage.input_tokens, turn.usage.output_tokens)
    if turn.finished_at:
        entry["finishedAt"] = stamp(turn.finished_at)
    return entry


def usage_entry(input_tokens: int, output_tokens: int) -> Status:
    return {"inputTokens": input_tokens, "outputTokens": output_tokens}


def unresolved_entry(name: str, task: Task, item: Attention) -> Status:
    """What is not known of a step: shown while the run waits with `NeedsResolution` (NOD-090)."""
    return {
        "step": name,
        "what": item.what,
        "guarantee": task.guarantee.value,
        "input": preview(task.input, 1024) if task.input else "",
        "since": stamp(item.since),
    }


def _turns(status: Status, turn: Turn) -> list[Status]:
    entry = turn_entry(turn)
    others = [item for item in status.get("turns", []) if item["turn"] != turn.number]
    return [*others, entry][-MOST_TURNS:]


def _plain(status: Status) -> Status:
    return {key: value for key, value in status.items() if key not in _OF_A_WAIT}
