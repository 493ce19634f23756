"""Commits on a line: who works on it.

kick ──► (execution starts) ──► take ──► renew … ──► rest
  ▲                              ▲ │ the next taker of the same generation fences the one before
  │                              │ └──► hand-over: the execution has gone round often enough
  └── a kick with a new generation fences everything older
"""

from dataclasses import replace
from datetime import datetime, timedelta

from nodus_core.journal.codec import to_row
from nodus_core.journal.fence import Fence
from nodus_core.journal.keys import conversation_key, due_shard, run_key
from nodus_core.journal.store import Absent, Below, Either, Equals, Operation, Put, Row, Update, both
from nodus_core.journal.writer import Writer, stored
from nodus_core.kernel.errors import ConditionFailed
from nodus_core.kernel.objects import Conversation, Hold, Line, Run
from nodus_core.kernel.stopping import next_look
from nodus_core.kernel.times import stamp

LEASE = timedelta(seconds=30)
"""How long a worker, or a started execution that has not shown itself, keeps a line to itself."""


def due(pk: str, at: datetime) -> Row:
    """Attributes that put a row into the sweeper's index."""
    return {"dueShard": due_shard(pk), "dueAt": stamp(at)}


DUE = ("dueShard", "dueAt")

FIRST_GENERATION = 1


def first(created_at: datetime) -> Line:
    """The line of a new conversation; the lease is that of the execution that starts after the commit.

    When that start is lost, the sweeper sees the lease end.
    """
    return Line(FIRST_GENERATION, lease_until=created_at + LEASE)


def opening(conversation: Conversation, now: datetime) -> Put:
    """Stores a new conversation, whose line is due at once. Condition: there is none."""
    key = conversation_key(conversation.id)
    return Put(stored(key, conversation, outbox="line", **due(key.pk, now)), when=Absent())


OPEN = Either((Absent("closed"), Equals("closed", False)))
"""Of a conversation's head: something may still be left to do. A closed line is never due again."""


def _failures(line: Line, mark: int) -> int:
    """Workers in a row that died without progress; one that is named still has not let go of the line."""
    if mark != line.mark:
        return 0
    return line.failures + (1 if line.claimant is not None else 0)


class Lines:
    """Commits that move a line between workers."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def kick(self, conversation: Conversation, now: datetime, *, dead: bool = False) -> int:
        """Gives the line a new generation, which names the execution to start. Returns it.

        Condition: the generation is the one seen, the line is not closed, and no lease holds (`dead`: its
        execution is known dead).
        Raises `ConditionFailed` when somebody else kicked or works: nothing is left to do then.
        """
        key = conversation_key(conversation.id)
        until = now + LEASE
        free = None if dead else Either((Absent("line.lease_until"), Below("line.lease_until", stamp(now))))
        generation = conversation.line.generation + 1
        self._writer.commit(
            "kick",
            Update(
                key,
                when=both(Equals("line.generation", conversation.line.generation), OPEN, free),
                assign={
                    "line.generation": generation,
                    "line.lease_until": stamp(until),
                    "line.rounds": 0,
                    **due(key.pk, until),
                },
                # The claimant stays: whoever is still named at the next taking has not let go, so it died.
                remove=("outbox",),
                add={"line.kicks": 1},
            ),
        )
        return generation

    def ring(self, conversation: Conversation) -> None:
        """Tells whoever holds the line that there is something to look at. Condition: the generation is the same.

        A line whose generation has changed is looked at anyhow.
        """
        try:
            self._writer.commit(
                "ring",
                Update(
                    conversation_key(conversation.id),
                    when=Equals("line.generation", conversation.line.generation),
                    add={"bell": 1},
                    remove=("outbox",),
                ),
            )
        except ConditionFailed:
            return

    def take(
        self, conversation: Conversation, run: Run | None, fence: Fence, now: datetime
    ) -> tuple[Conversation, Run | None]:
        """The worker of an invocation takes the line; whoever held it in this generation is fenced.

        Condition: the generation is the fence's, the line is not closed, and the open run is the one seen, as it was
        seen: whoever held the line may have written it since. Raises `ConditionFailed`.
        """
        key = conversation_key(conversation.id)
        until = now + LEASE
        mark = conversation.steps + (run.seq if run else 0)
        before = conversation.line
        line = Line(
            generation=fence.generation,
            claimant=fence.claimant,
            lease_until=until,
            failures=_failures(before, mark),
            mark=mark,
            rounds=before.rounds + 1,
        )
        hold = Hold(fence.generation, fence.claimant)
        same_run = Absent("run") if run is None else Equals("run", run.uid)
        operations: list[Operation] = [
            Update(
                key,
                when=both(Equals("line.generation", fence.generation), OPEN, same_run),
                assign={"line": to_row(line), **due(key.pk, until)},
                remove=("outbox",),
            )
        ]
        if run is not None:
            operations.append(
                Update(
                    run_key(run.uid),
                    when=Equals("version", run.version),
                    assign={f"lines.{fence.branch}": to_row(hold)},
                )
            )
        self._writer.commit("take", *operations)
        taken = replace(conversation, line=line)
        return taken, run and replace(run, lines={**run.lines, fence.branch: hold})

    def renew(self, fence: Fence, now: datetime) -> None:
        """Moves the end of the lease. Condition: the fence holds. Raises `ConditionFailed` when fenced."""
        key = conversation_key(fence.conversation)
        until = now + LEASE
        self._writer.commit(
            "renew",
            Update(
                key,
                when=fence.on_conversation,
                assign={"line.lease_until": stamp(until), **due(key.pk, until)},
                remove=("outbox",),
            ),
        )

    def hand_over(self, fence: Fence, now: datetime) -> None:
        """The worker lets go for the line's next execution, which a kick starts at once: the row is marked for it.

        What of `failures` there is stays. Condition: the fence holds. Raises `ConditionFailed`: it is another's.
        """
        key = conversation_key(fence.conversation)
        self._writer.commit(
            "hand-over",
            Update(
                key,
                when=fence.on_conversation,
                assign={"outbox": "line", **due(key.pk, now)},
                remove=("line.claimant", "line.lease_until"),
            ),
        )

    def rest(
        self,
        fence: Fence,
        conversation: Conversation,
        due_at: datetime | None,
        *more: Operation,
        failures: int = 0,
    ) -> None:
        """The worker lets go; the line is looked at again at `due_at`, or only when it is kicked (None).

        In any case it is looked at when its deadline comes.

        `failures` is what the line keeps of them: none, unless it rests because its workers die. Condition: the fence holds and nobody rang the bell since it was read. Raises `ConditionFailed`
        when something new is there (look again) or the line is another's.
        """
        key, look = conversation_key(fence.conversation), next_look(conversation, due_at)
        self._writer.commit(
            "rest",
            Update(
                key,
                when=both(fence.on_conversation, Equals("bell", conversation.bell)),
                assign={"line.failures": failures, **(due(key.pk, look) if look else {})},
                remove=("line.claimant", "line.lease_until", "outbox", *(() if look else DUE)),
            ),
            *more,
        )
