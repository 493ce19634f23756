"""Commits by which people say what became of steps whose outcome is not known, from outside, at any moment."""

from collections.abc import Iterable

from nodus_core.journal.codec import to_row, to_value
from nodus_core.journal.keys import conversation_key, run_key, task_key
from nodus_core.journal.lines import due
from nodus_core.journal.receipts import remember
from nodus_core.journal.store import Absent, Equals, Operation, Update, both
from nodus_core.journal.writer import Writer
from nodus_core.kernel.objects import Receipt, Run
from nodus_core.kernel.progress import resolve
from nodus_core.kernel.states import TaskState
from nodus_core.kernel.tasks import Resolution, Task


class Resolutions:
    """The commit of a person's word; the worker of the line carries it out."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def resolve(
        self,
        run: Run,
        task: Task,
        resolution: Resolution,
        receipt: Receipt,
        more: Iterable[Operation],
    ) -> None:
        """Keeps what a person has said of a held task, rings the bell and makes the line due.

        Condition: the run is open and its version the one seen, nobody stopped it, the task is uncertain in the
        attempt that was resolved, the receipt's key is free. `more` is the status projection. Raises
        `ConditionFailed`; the last position is the receipt.
        """
        after = resolve(run, task.key)
        key, now = conversation_key(run.conversation), resolution.at
        attention = {"attention": to_value(after.attention)} if after.attention else {}
        self._writer.commit(
            "resolve",
            Update(
                key,
                when=both(Equals("run", run.uid), Absent("stop"), Equals("ended", False)),
                # Due at once: a line that rests without a due time would else depend on a kick to see it.
                assign={"outbox": "line", **due(key.pk, now)},
                add={"bell": 1},
            ),
            Update(
                # Its lines stay as they are: whoever holds one looks again when the version has moved.
                run_key(run.uid),
                when=both(Equals("version", run.version), Absent("stop")),
                assign={"version": after.version, "state": after.state.value, **attention},
                remove=() if after.attention else ("attention",),
            ),
            Update(
                task_key(run.uid, task.key),
                when=both(Equals("state", TaskState.UNCERTAIN.value), Equals("attempt", resolution.attempt)),
                assign={"resolutions": [*to_value(task.resolutions), to_row(resolution)]},
            ),
            *more,
            remember(receipt, now),
        )
