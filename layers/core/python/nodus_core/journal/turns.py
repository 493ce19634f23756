"""Commits on turns: a conversation's prompts, one at a time.

open_turn ──► (steps of the run) ──► finish_turn ──► open_turn … ──► close
stop: from outside, at any moment; the line then cuts what is open and finishes the turn as canceled
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from nodus_core.journal.codec import to_row
from nodus_core.journal.fence import Fence
from nodus_core.journal.keeping import kept
from nodus_core.journal.keys import conversation_key, input_key, run_key, turn_key
from nodus_core.journal.lines import DUE, due
from nodus_core.journal.store import (
    Absent,
    Equals,
    OneOf,
    Operation,
    Present,
    Put,
    Update,
    both,
)
from nodus_core.journal.writer import Writer, stored
from nodus_core.kernel.objects import Conversation, Run, StopMarker, Turn
from nodus_core.kernel.states import InputState, RunState, TurnState


class Turns:
    """Commits that open, finish and stop turns, and close the conversation."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def open_turn(
        self, fence: Fence, conversation: Conversation, turn: Turn, run: Run, more: Iterable[Operation]
    ) -> Conversation:
        """The next queued input becomes a turn with its run.

        Condition: the fence holds, no run is open, the input is the next one and queued, nobody stopped
        the conversation, turn and run are new. `more` is the status projection. Raises `ConditionFailed`.
        """
        opened = replace(conversation, run=run.uid, opened=turn.number)
        self._writer.commit(
            "open-turn",
            Update(
                conversation_key(conversation.id),
                when=both(
                    fence.on_conversation,
                    Absent("run"),
                    Absent("stop"),
                    Equals("opened", turn.number - 1),
                ),
                assign={"run": run.uid, "opened": turn.number},
                remove=("outbox",),
            ),
            Update(
                input_key(conversation.id, turn.input),
                when=Equals("state", InputState.QUEUED.value),
                assign={"state": InputState.OPENED.value},
            ),
            Put(stored(turn_key(conversation.id, turn.number), turn), when=Absent()),
            Put(stored(run_key(run.uid), run), when=Absent()),
            *more,
        )
        return opened

    def finish_turn(
        self,
        fence: Fence,
        conversation: Conversation,
        run: Run,
        turn: Turn,
        more: Iterable[Operation],
        *,
        ends: bool,
    ) -> Conversation:
        """The turn is final and its run settled; with `ends` the conversation takes no more input.

        Condition: the fence holds in both heads, the run's version is the one seen, nothing is open in
        it and it holds no money of an account, the turn is not final yet, and no input came in since the head was
        read (else look again: it gets a turn, FLD-12, and the run does not show that it waits for one). A stop
        that was not seen is seen first; a stopped conversation takes no input. Raises `ConditionFailed`.
        """
        settled = replace(run, state=RunState.SETTLED, version=run.version + 1)
        after = replace(
            conversation,
            run=None,
            ended=ends,
            steps=conversation.steps + run.seq,
            spent=conversation.spent + run.spent,
        )
        self._writer.commit(
            "finish-turn",
            Update(
                conversation_key(conversation.id),
                when=both(
                    fence.on_conversation,
                    Equals("run", run.uid),
                    Equals("accepted", conversation.accepted),
                    Absent("stop") if conversation.stop is None else Present("stop"),
                ),
                assign={"ended": ends, "steps": after.steps, "spent": after.spent},
                remove=("run", "outbox"),
            ),
            Put(
                stored(run_key(run.uid), settled),
                when=both(fence.on_run, Equals("version", run.version), Absent("open"), Absent("purse")),
            ),
            Put(
                stored(turn_key(conversation.id, turn.number), turn),
                when=OneOf("state", (TurnState.OPEN.value, TurnState.HELD.value)),
            ),
            *more,
        )
        return after

    def end(self, fence: Fence, conversation: Conversation, more: Iterable[Operation]) -> Conversation:
        """A conversation without an open turn takes no more input. Condition: the fence holds, no run."""
        self._writer.commit(
            "end",
            Update(
                conversation_key(conversation.id),
                when=both(fence.on_conversation, Absent("run")),
                assign={"ended": True},
                remove=("outbox",),
            ),
            *more,
        )
        return replace(conversation, ended=True)

    def close(
        self, fence: Fence, conversation: Conversation, now: datetime, more: Iterable[Operation]
    ) -> None:
        """The line is over: it is due no more, and its texts are kept for a time from now on. Condition: the fence holds, ended, no sandbox."""
        self._writer.commit(
            "close",
            Update(
                conversation_key(conversation.id),
                when=both(fence.on_conversation, Equals("ended", True), Absent("sandbox")),
                assign={"closed": True},
                remove=("line.claimant", "line.lease_until", "outbox", *DUE),
            ),
            kept(conversation.id, now),
            *more,
        )

    def stop(self, conversation: Conversation, marker: StopMarker, more: Iterable[Operation]) -> None:
        """Sets the stop marker on the conversation and its open run, rings the bell and makes the line due.

        Condition: no marker yet, not ended, the open run is the one seen. From this commit on no claim of
        the run can be written. Raises `ConditionFailed`.
        """
        same_run = Absent("run") if conversation.run is None else Equals("run", conversation.run)
        key = conversation_key(conversation.id)
        operations: list[Operation] = [
            Update(
                key,
                when=both(Present(), Absent("stop"), Equals("ended", False), same_run),
                # Due at once: a line that rests without a due time would else depend on a kick to see it.
                assign={"stop": to_row(marker), "outbox": "line", **due(key.pk, marker.at)},
                add={"bell": 1},
            ),
            *more,
        ]
        if conversation.run is not None:
            operations.append(
                Update(
                    run_key(conversation.run),
                    when=both(Present(), Absent("stop")),
                    assign={"stop": to_row(marker)},
                )
            )
        self._writer.commit("stop", *operations)


def chosen(turn: Turn) -> Operation:
    """Part of the commit that records the model choice of an open turn: from then on the turn names it."""
    return Update(
        turn_key(turn.conversation, turn.number),
        when=Equals("state", TurnState.OPEN.value),
        assign={"model": turn.model, "chosen_by": turn.chosen_by},
    )
