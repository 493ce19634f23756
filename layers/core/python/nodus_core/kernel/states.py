"""States and the table of allowed transitions (orchestration catalogue, *Assumed objects*)."""

from enum import StrEnum


class InputState(StrEnum):
    SCHEDULED = "scheduled"
    QUEUED = "queued"
    BOUND = "bound"
    CONSUMED = "consumed"
    OPENED = "opened"
    RECORDED = "recorded"
    DELETED = "deleted"
    CANCELED = "canceled"


class TurnState(StrEnum):
    OPEN = "open"
    HELD = "held"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"


class RunState(StrEnum):
    RUNNING = "running"
    BACKGROUND = "background"
    NEEDS_ATTENTION = "needs_attention"
    STOPPING = "stopping"
    SETTLED = "settled"


class TaskState(StrEnum):
    PENDING = "pending"
    READY = "ready"
    RUNNING = "running"
    PARKED = "parked"
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"
    UNCERTAIN = "uncertain"
    TIMED_OUT = "timed_out"
    CANCELED = "canceled"


class TaskKind(StrEnum):
    MODEL = "model"
    TOOL = "tool"
    AWAIT = "await"
    RACE = "race"
    DELEGATION = "delegation_task"


class SandboxState(StrEnum):
    REQUESTED = "requested"
    RUNNING = "running"
    RELEASING = "releasing"
    GONE = "gone"


class Statement(StrEnum):
    """What a person says of a step whose outcome is not known (wire words, NODQ-55)."""

    HAPPENED = "Happened"
    DID_NOT_HAPPEN = "DidNotHappen"


class CommandState(StrEnum):
    """PENDING: no daemon has it. CLAIMED: one may be running it. WITHDRAWN: it certainly never ran."""

    PENDING = "pending"
    CLAIMED = "claimed"
    DONE = "done"
    LOST = "lost"
    WITHDRAWN = "withdrawn"


class Guarantee(StrEnum):
    """What holds for a step's effect when a worker dies between claim and record (shown on the step).

    EXACTLY_ONCE: journal and effect commit together. AT_LEAST_ONCE: the call is made again and counted as
    resent. AT_MOST_ONCE: never made again; an unknown outcome parks the run.
    """

    EXACTLY_ONCE = "ExactlyOnce"
    AT_LEAST_ONCE = "AtLeastOnce"
    AT_MOST_ONCE = "AtMostOnce"


FINAL_TASKS = frozenset(
    {
        TaskState.COMPLETED,
        TaskState.FAILED,
        TaskState.SKIPPED,
        TaskState.UNCERTAIN,
        TaskState.TIMED_OUT,
        TaskState.CANCELED,
    }
)

ALIVE_SANDBOXES = (SandboxState.REQUESTED, SandboxState.RUNNING)
"""States in which a sandbox takes commands, now or once it is up."""

OPEN_COMMANDS = (CommandState.PENDING, CommandState.CLAIMED)
"""States of a command that has not ended."""

TASK_MOVES: dict[TaskState, frozenset[TaskState]] = {
    TaskState.PENDING: frozenset({TaskState.READY, TaskState.SKIPPED, TaskState.CANCELED}),
    TaskState.READY: frozenset({TaskState.RUNNING, TaskState.PARKED, TaskState.CANCELED}),
    TaskState.RUNNING: frozenset(
        {
            TaskState.COMPLETED,
            TaskState.FAILED,
            TaskState.UNCERTAIN,
            TaskState.TIMED_OUT,
            TaskState.CANCELED,
        }
    ),
    TaskState.PARKED: frozenset(
        {TaskState.COMPLETED, TaskState.FAILED, TaskState.TIMED_OUT, TaskState.CANCELED}
    ),
    TaskState.FAILED: frozenset({TaskState.READY}),  # only an explicit retry of a held task, attempt + 1
    # Only a person's word moves it on: it came to something, or it is done again, attempt + 1.
    TaskState.UNCERTAIN: frozenset(
        {TaskState.COMPLETED, TaskState.FAILED, TaskState.RUNNING, TaskState.CANCELED}
    ),
}


def may_move(old: TaskState, new: TaskState) -> bool:
    """Whether the table of the catalogue allows a task to go from `old` to `new`."""
    return new in TASK_MOVES.get(old, frozenset())


class BatchState(StrEnum):
    """Runs that are created together: being written, there, or given up."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"
