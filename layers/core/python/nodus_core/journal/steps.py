"""Commits on the steps of a run: claim, record, retake, cut.

    look ─► claim ─► (the effect) ─► record, with the claim of what comes next in the same transaction
                        └─ the worker dies ─► retake (managed model calls), or the sandbox is asked

Every one writes the run's head under its version and fence, so that two of them never build on one state.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nodus_core.journal.codec import to_value
from nodus_core.journal.fence import Fence
from nodus_core.journal.keys import (
    conversation_key,
    observation_key,
    run_key,
    task_key,
)
from nodus_core.journal.owning import owning, placed, requested
from nodus_core.journal.store import Absent, Equals, OneOf, Operation, Present, Put, Update, both
from nodus_core.journal.writer import Writer, stored
from nodus_core.kernel.objects import Conversation, Run
from nodus_core.kernel.progress import begin, observations, recorded, settle
from nodus_core.kernel.sandboxes import Command, Sandbox
from nodus_core.kernel.sources import Copied
from nodus_core.kernel.states import TaskState
from nodus_core.kernel.tasks import Task

UNSETTLED = (TaskState.RUNNING.value, TaskState.PARKED.value, TaskState.UNCERTAIN.value)
"""States of an open task: `uncertain` is one while a person is asked what became of it."""


@dataclass(frozen=True)
class Changes:
    """What one commit does to a run.

    `settled` are final tasks, in the order in which they are observed, and those to be held because their outcome
    is not known; `begun` are tasks that start now, and `again` held ones that get a further attempt, both with
    their `commands`; `selection` is the model choice that the turn has got by them, `left_out` the number of
    messages of results that calls leave out from now on.
    """

    settled: Sequence[Task] = ()
    begun: Sequence[Task] = ()
    again: Sequence[Task] = ()
    commands: Sequence[Command] = ()
    selection: str | None = None
    left_out: int = 0
    more: Sequence[Operation] = ()


class Steps:
    """Commits of a run's journal. Each returns the run's head as it then is."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def record(self, fence: Fence, run: Run, changes: Changes, *, name: str | None = None) -> Run:
        """Settles what is done and claims what is next, in one transaction.

        Condition: the fence holds, the version is the one seen, nobody stopped the run, each begun task is
        new, each settled one is running, held or new (refused before it began), each that is done again is held
        in the attempt before. Raises `ConditionFailed`.
        """
        usual = "record" if changes.settled else "again" if changes.again else "claim"
        return self._write(name or usual, fence, run, changes, Absent("stop"))

    def cut(self, fence: Fence, run: Run, tasks: Sequence[Task]) -> Run:
        """Settles open tasks of a stopped run as they ended: canceled, or with the result that came in.

        Condition: as `record`, but the stop marker is there.
        """
        return self._write("cut", fence, run, Changes(settled=tasks), Present("stop"))

    def retake(
        self, fence: Fence, run: Run, old: Task, new: Task, *more: Operation, name: str = "retake"
    ) -> Run:
        """An open task gets a further attempt under the same reserve, or is let go until its provider is free.

        Condition: as `record`; the task is running in the old one's attempt. Raises `ConditionFailed`.
        """
        after = replace(run, version=run.version + 1)
        self._writer.commit(
            name,
            Put(
                stored(run_key(run.uid), after),
                when=both(fence.on_run, Equals("version", run.version), Absent("stop")),
            ),
            Put(
                stored(task_key(run.uid, new.key), new),
                when=both(Equals("state", TaskState.RUNNING.value), Equals("attempt", old.attempt)),
            ),
            *more,
        )
        return after

    def place_source(
        self,
        fence: Fence,
        run: Run,
        *,
        old: Task,
        new: Task,
        copied: Copied,
        command: Command,
        more: Sequence[Operation],
    ) -> Run:
        """Pins the source's commit and archive for all sandboxes of the conversation, and places the first copy.

        Condition: as `retake`; nothing is pinned. `more` is the status projection. Raises `ConditionFailed`.
        """
        pin = Update(
            conversation_key(run.conversation),
            when=both(fence.on_conversation, Absent("source")),
            assign={"source": to_value(copied)},
            remove=("outbox",),
        )
        return self.retake(fence, run, old, new, pin, *placed((command,)), *more, name="place-source")

    def request_sandbox(
        self,
        fence: Fence,
        conversation: Conversation,
        run: Run,
        task: Task,
        sandbox: Sandbox,
        *,
        more: Sequence[Operation] = (),
    ) -> tuple[Conversation, Run]:
        """Claims the start of a sandbox: its row, with its owner, exists before the provider makes it (FLD-10).

        Condition: as `record`; the conversation's sandbox, if any, is the one seen, which is gone and booked. `more`
        is the status projection, and what accounts hold for its first period. Raises `ConditionFailed`.
        """
        rows = requested(fence, conversation, sandbox)
        claim = Changes(begun=(task,), more=(*rows, *more))
        after = self.record(fence, run, claim, name="request-sandbox")
        return owning(conversation, sandbox), after

    def replace_sandbox(
        self,
        fence: Fence,
        conversation: Conversation,
        run: Run,
        *,
        old: Task,
        new: Task,
        sandbox: Sandbox,
        more: Sequence[Operation] = (),
    ) -> tuple[Conversation, Run]:
        """A further try to start a sandbox: the task's next attempt names a new one (NOD-054).

        Condition: as `retake`; the conversation's sandbox is the one that failed, and booked. `more`: as of
        `request_sandbox`. Raises `ConditionFailed`.
        """
        rows = requested(fence, conversation, sandbox)
        after = self.retake(fence, run, old, new, *rows, *more, name="replace-sandbox")
        return owning(conversation, sandbox), after

    def _write(self, name: str, fence: Fence, run: Run, changes: Changes, stopped: Absent | Present) -> Run:
        after = begin(settle(run, changes.settled), changes.begun)
        after = replace(
            after,
            version=run.version + 1,
            selection=changes.selection or run.selection,
            left_out=max(changes.left_out, run.left_out),
        )
        head = Put(
            stored(run_key(run.uid), after),
            when=both(fence.on_run, Equals("version", run.version), stopped),
        )
        self._writer.commit(
            name,
            head,
            *(_settled(run, task) for task in changes.settled),
            *(
                Put(stored(observation_key(run.uid, entry.seq), entry), when=Absent())
                for entry in observations(run, changes.settled)
            ),
            *(Put(stored(task_key(run.uid, task.key), task), when=Absent()) for task in changes.begun),
            *(_done_again(run, task) for task in changes.again),
            *placed(changes.commands),
            *changes.more,
        )
        return after


def _settled(run: Run, task: Task) -> Put:
    row = stored(task_key(run.uid, task.key), recorded(run, task))
    if task.key not in run.open:
        return Put(row, when=Absent())
    return Put(row, when=both(OneOf("state", UNSETTLED), Equals("attempt", task.attempt)))


def _done_again(run: Run, task: Task) -> Put:
    held = both(Equals("state", TaskState.UNCERTAIN.value), Equals("attempt", task.attempt - 1))
    return Put(stored(task_key(run.uid, task.key), task), when=held)
