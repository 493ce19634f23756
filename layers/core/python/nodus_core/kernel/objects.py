"""Frozen objects of the kernel: what the journal's rows mean (orchestration catalogue, *Assumed objects*).

Steps stand in `kernel.tasks`, sandboxes and their commands in `kernel.sandboxes`, sources in `kernel.sources`.

A linear run is the trivial graph: one branch (`main`), rounds in a row, the calls of each round below it.
Fields that only later commits fill (reads, branches, deliveries) are part of the model from the start.
"""

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from nodus_core.kernel.money import ZERO, Purse
from nodus_core.kernel.saving import Save, Saving
from nodus_core.kernel.sources import Copied
from nodus_core.kernel.states import BatchState, InputState, RunState, TurnState
from nodus_core.kernel.tasks import NO_TOKENS, Usage
from nodus_core.kernel.text import Text

AGENT_RUN = "AgentRun"
SANDBOX = "Sandbox"
"""The kinds whose objects have lines."""


@dataclass(frozen=True)
class ObjectKey:
    """Where a resource stands: organization, project (the namespace), kind, name."""

    org: str
    project: str
    kind: str
    name: str


@dataclass(frozen=True)
class ValueRef:
    """What an object is known to hold without holding it: a digest by which the same is known again.

    Of a Secret, `version` names its values in the vault; of an ApiKey, `digest` is the sha256 of its token.
    """

    version: str
    digest: str


@dataclass(frozen=True)
class Owner:
    """The run that an object belongs to: it comes, changes and goes with it."""

    name: str
    uid: str


@dataclass(frozen=True)
class Object:
    """A resource: envelope, spec (JSON text) and status projection.

    `version` grows with every change and is the watch position; `generation` grows with the spec. `value` is a
    Secret's, whose values stand in the vault and nowhere else, or an ApiKey's. `expired_at`: an AgentRun's texts are gone.
    `annotations` is the JSON text of what others note on it; `revised_at` is when the spec changed last, None while it
    is as it was created.
    `selectable`: the fields of the spec that a selector may name, beside the text so that no reader needs that for them.
    `owner`: of a run's sandbox, whose uid is the sandbox's id; only its run's line writes it.
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
    annotations: Text | None = None
    revised_at: datetime | None = None
    selectable: dict[str, str] = field(default_factory=dict[str, str])
    owner: Owner | None = None


@dataclass(frozen=True)
class Batch:
    """Runs that are created together or not at all: their names and uids in the same order.

    Until it is committed none of its rows counts for anybody (`journal/batches.py`).
    """

    id: str
    org: str
    project: str
    names: tuple[str, ...]
    uids: tuple[str, ...]
    opened_at: datetime
    state: BatchState = BatchState.OPEN


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
    which no cap counts (NOD-134). Of a Sandbox's own line (`kernel.machines`), `paused` is why its machine stands
    still; None: it is wanted to run. `saves` are the complete saves of its sandboxes' folder, the newest first,
    `saving` is the one under way, and `unkept` names archives that may stand in the store and are not to;
    `save_begun_at` and `saved_steps` are when the last one began, and how many steps there were then. `source` is the commit or
    archive that a run has pinned.
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
    paused: str | None = None
    saves: tuple[Save, ...] = ()
    saving: Saving | None = None
    unkept: tuple[str, ...] = ()
    saves_begun: int = 0
    save_begun_at: datetime | None = None
    saved_steps: int = 0
    source: Copied | None = None
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
    usage: Usage = NO_TOKENS
    lifetime: str = "turn"
    attention: tuple[Attention, ...] = ()
    stop: StopMarker | None = None
    purse: Purse | None = None


@dataclass(frozen=True)
class Receipt:
    """A promise kept with its effect: `digest` is of the request, `facts` what was answered (JSON text).

    `status` is the object's, if it is part of the answer. It is no JSON text: escaped, one that fits into its object's
    row may be six times as long, and fit into no row.
    """

    key: str
    digest: str
    facts: str
    at: datetime
    status: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class Cooling:
    """No call through a gate (an endpoint and a key, named by a hash) is made before `until` (FLD-04)."""

    gate: str
    until: datetime
