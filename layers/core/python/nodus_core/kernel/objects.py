"""Frozen objects of the kernel: what the journal's rows mean (orchestration catalogue, *Assumed objects*).

A linear run is the trivial graph: one branch (`main`), rounds in a row, the calls of each round below it.
Fields that only later commits fill (reads, branches, deliveries) are part of the model from the start.
"""

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from nodus_core.kernel.money import ZERO, Meter, Purse
from nodus_core.kernel.states import (
    CommandState,
    Guarantee,
    InputState,
    RunState,
    SandboxState,
    Statement,
    TaskKind,
    TaskState,
    TurnState,
)
from nodus_core.kernel.text import Text


@dataclass(frozen=True)
class ObjectKey:
    """Where a resource stands: organization, project (the namespace), kind, name."""

    org: str
    project: str
    kind: str
    name: str


@dataclass(frozen=True)
class ValueRef:
    """The values of a Secret: their `version` in the vault, and a `digest` by which the same ones are known again."""

    version: str
    digest: str


@dataclass(frozen=True)
class Object:
    """A resource: envelope, spec (JSON text) and status projection.

    `version` grows with every change and is the watch position; `generation` grows with the spec. `value` is a
    Secret's only: its values stand in the vault, and nowhere else. `expired_at`: an AgentRun's texts are gone.
    """

    key: ObjectKey
    uid: str
    version: int
    generation: int
    spec: Text
    created_at: datetime
    status: dict[str, Any] = field(default_factory=dict[str, Any])
    deleted_at: datetime | None = None
    labels: dict[str, str] = field(default_factory=dict[str, str])
    value: ValueRef | None = None
    expired_at: datetime | None = None


@dataclass(frozen=True)
class LooseValue:
    """Values in the vault that no object names yet, or any more. `doomed`: they are being removed."""

    org: str
    project: str
    uid: str
    doomed: bool = False


@dataclass(frozen=True)
class StopMarker:
    """A source cut: set once, never moved. `reason` is the word a person sees (`Cancelled`, …)."""

    at: datetime
    by: str
    reason: str


@dataclass(frozen=True)
class Line:
    """What works on one branch of a conversation: who holds it, and until when.

    `generation` names the execution and fences everything older; `claimant` is unique to one invocation.
    `claimant` is named until it lets go: one that the next taker finds has died. `failures` counts those in a
    row that died without progress (`mark` is the progress seen last), for the back-off of a line that keeps
    dying; `kicks` counts kicks since the last taking; `rounds` counts the takings of this generation, each a
    round of its execution.
    """

    generation: int
    claimant: str | None = None
    lease_until: datetime | None = None
    failures: int = 0
    mark: int = 0
    kicks: int = 0
    rounds: int = 0


@dataclass(frozen=True)
class Conversation:
    """Head of a conversation; its main line stands in it.

    `accepted`, `opened` and `returned` count inputs: a turn is owed while accepted > opened, and once the
    conversation has ended the rest is returned: settled without a turn (FLD-12). `bell` is raised by everyone
    who leaves something for the line to look at, so that no worker rests over it. `ended` means that no
    more input is taken, `closed` that nothing is left to do and no worker will take the line again. `cap`,
    `spent` are USD; the cap is fixed at creation (NOD-131). `compute` is what its sandboxes that are gone have cost,
    which no cap counts (NOD-134).
    """

    id: str
    object: ObjectKey
    context: Text
    line: Line
    created_at: datetime
    cap: Decimal
    keep_alive: bool = False
    kind: str = "main"
    parent: str | None = None
    label: str | None = None
    accepted: int = 0
    opened: int = 0
    returned: int = 0
    bell: int = 0
    steps: int = 0
    spent: Decimal = ZERO
    compute: Decimal = ZERO
    run: str | None = None
    sandbox: str | None = None
    sandboxes: int = 0
    attempts: int = 0
    deadline: datetime | None = None
    stop: StopMarker | None = None
    ended: bool = False
    closed: bool = False


@dataclass(frozen=True)
class Input:
    """A row of a conversation's queue: a person's message, a brief, a send or mail come in by one door."""

    conversation: str
    seq: int
    text: Text
    state: InputState
    origin: str
    author: str
    created_at: datetime
    message_key: str | None = None
    deliver_at: datetime | None = None
    source_run: str | None = None
    source_task: str | None = None


@dataclass(frozen=True)
class Usage:
    """Tokens of one call or one turn."""

    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(self.input_tokens + other.input_tokens, self.output_tokens + other.output_tokens)


@dataclass(frozen=True)
class Turn:
    """One prompt and its answer. `chosen_by` is `jev`, `fallback` or `configured` (NOD-055, NODQ-24)."""

    conversation: str
    number: int
    input: int
    run: str
    state: TurnState
    prompt: str
    started_at: datetime
    finished_at: datetime | None = None
    model: str | None = None
    chosen_by: str | None = None
    cost: Decimal | None = None
    usage: Usage | None = None
    answer: Text | None = None
    reason: str | None = None
    relayed_at: datetime | None = None


@dataclass(frozen=True)
class Hold:
    """The fence of one branch in its run's head: generation and claimant of the worker that may write."""

    generation: int
    claimant: str


@dataclass(frozen=True)
class Attention:
    """Something that only a person can move on: the step, what is not known of it, since when."""

    task: str
    what: str
    since: datetime


@dataclass(frozen=True)
class Run:
    """Head of one execution of a turn.

    `version` grows with every commit on the run, so that two writers never build on the same state; `seq` numbers the observations without a gap; `open` are the tasks that have begun and not settled, held ones among them;
    `sandboxes`, `rounds` and `calls` count steps of their kind;
    `available` is what may still be reserved (conditions cannot add), `spent` what was booked, in USD;
    `selection` is the model choice of the turn (JSON text of the target and how it was chosen); `left_out` is the
    number of the conversation's oldest messages of tool results that no call repeats any more; `purse` is what
    budgets and credits have handed to it, None where none were asked.
    """

    uid: str
    conversation: str
    turn: int
    state: RunState
    lines: dict[str, Hold]
    available: Decimal
    created_at: datetime
    spent: Decimal = ZERO
    version: int = 0
    seq: int = 0
    sandboxes: int = 0
    rounds: int = 0
    calls: int = 0
    cut_rounds: int = 0
    open: frozenset[str] = frozenset()
    selection: str | None = None
    left_out: int = 0
    usage: Usage = Usage()
    lifetime: str = "turn"
    attention: tuple[Attention, ...] = ()
    stop: StopMarker | None = None
    purse: Purse | None = None


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
    truth.

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


@dataclass(frozen=True)
class Receipt:
    """A promise kept with its effect: `digest` is of the request, `facts` what was answered (JSON text)."""

    key: str
    digest: str
    facts: str
    at: datetime


@dataclass(frozen=True)
class Cooling:
    """No call through a gate (an endpoint and a key, named by a hash) is made before `until` (FLD-04)."""

    gate: str
    until: datetime


@dataclass(frozen=True)
class Sandbox:
    """Head of a sandbox. Hashes are sha256 hex; `wake` asks for a kick when it comes up or is gone.

    `isolated`, `guard` and `about` are what its daemon says of itself (`journal.sandboxes.Greeting`). Its time
    counts from `started_at`, when its task was asked for last, to `gone_at`.
    """

    id: str
    conversation: str
    state: SandboxState
    enrol_hash: str
    created_at: datetime
    image: str
    egress: str = "Deny"
    token_hash: str | None = None
    task: str | None = None
    boot: str | None = None
    connection: str | None = None
    isolated: bool | None = None
    guard: str | None = None
    about: str | None = None
    reason: str | None = None
    wake: bool = False
    started_at: datetime | None = None
    gone_at: datetime | None = None
    meter: Meter | None = None


@dataclass(frozen=True)
class Command:
    """The log row of one effect in a sandbox: the truth between the line and the daemon.

    `digest` fixes kind and request; `result` is the daemon's JSON, once `state` is `done`, and that of a long one is
    without its output: `told` is the text that the model gets of it, stored once for this row and the step's. `limit_s` is the time in seconds after which a daemon that has said nothing is not believed to say anything any more.
    """

    sandbox: str
    id: str
    kind: str
    request: Text
    digest: str
    state: CommandState
    created_at: datetime
    limit_s: int = 3600
    boot: str | None = None
    claimed_at: datetime | None = None
    finished_at: datetime | None = None
    result: Text | None = None
    told: Text | None = None
    cancel: bool = False
    wake: bool = False
