"""Frozen objects of a run's steps: tasks, what they came to, and the log of what was seen of them."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from nodus_core.kernel.states import Guarantee, Statement, TaskKind, TaskState
from nodus_core.kernel.text import Text


@dataclass(frozen=True)
class Usage:
    """Tokens of one call or one turn."""

    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(self.input_tokens + other.input_tokens, self.output_tokens + other.output_tokens)


NO_TOKENS = Usage()


@dataclass(frozen=True)
class Claim:
    """Who began a task: the worker's claimant id, its line generation, and when."""

    claimant: str
    generation: int
    at: datetime


@dataclass(frozen=True)
class PlannedCall:
    """A call of a round's message as it stands in the round's row: its task key, tool and number in the turn."""

    key: str
    tool: str
    number: int


@dataclass(frozen=True)
class Result:
    """What a task came to. `exit_code` and `reason` are a command's; `error` is a stable word."""

    text: Text | None = None
    is_error: bool = False
    error: str | None = None
    exit_code: int | None = None
    raw_bytes: int | None = None
    dropped_bytes: int | None = None


@dataclass(frozen=True)
class Resolution:
    """What a person said of a step whose outcome was not known: of which attempt, who, when.

    `what` is what was not known; `result` is what the person says it came to, if it happened.
    """

    attempt: int
    statement: Statement
    by: str
    at: datetime
    what: str
    result: Result | None = None


@dataclass(frozen=True)
class Task:
    """A step of the journal.

    `number` counts rounds or calls of the turn (for the step's name); `sandbox` is where its command runs
    (the command's id is a function of run and key); `reserved` and `cost` are USD (`cost`
    None: unknown); `resent` counts managed model calls made again after a worker died; `message` is a
    round's assistant message record, `calls` its planned calls; `size` counts the bytes of the request that a round
    answered, which left out the results of `left_out` messages: with its usage, the next round's bound is near the
    truth. `not_before`: its provider has to be left alone until then, whoever wakes the line earlier.

    A task of an open run that is `uncertain` is held: it has not finished, and waits for a person's word. All that
    people have said of it are its `resolutions`, one for each attempt at most.
    """

    run: str
    key: str
    kind: TaskKind
    state: TaskState
    guarantee: Guarantee
    number: int
    started_at: datetime
    claim: Claim | None = None
    attempt: int = 1
    resent: int = 0
    tool: str | None = None
    parent: str | None = None
    placer: str = "kernel"
    branch: str = "main"
    reads: tuple[str, ...] = ()
    head: str | None = None
    detached: bool = False
    lifetime: str = "turn"
    on_failure: str = "absorb"
    input: Text | None = None
    sandbox: str | None = None
    size: int | None = None
    left_out: int = 0
    reserved: Decimal | None = None
    cost: Decimal | None = None
    usage: Usage | None = None
    model: str | None = None
    message: Text | None = None
    calls: tuple[PlannedCall, ...] = ()
    result: Result | None = None
    resolutions: tuple[Resolution, ...] = ()
    finished_at: datetime | None = None
    delivered_at: datetime | None = None
    not_before: datetime | None = None

    @property
    def resolution(self) -> Resolution | None:
        """What a person said of this attempt."""
        last = self.resolutions[-1] if self.resolutions else None
        return last if last is not None and last.attempt == self.attempt else None


@dataclass(frozen=True)
class Observation:
    """An entry of a run's append-only log; `seq` starts at 1 and has no gap (INV-44)."""

    run: str
    seq: int
    task: str
    state: TaskState
    at: datetime
