"""Frozen objects of sandboxes: their heads, and the commands that they are given."""

from dataclasses import dataclass
from datetime import datetime

from nodus_core.kernel.money import Meter
from nodus_core.kernel.states import CommandState, SandboxState
from nodus_core.kernel.text import Text


@dataclass(frozen=True)
class SecretVariable:
    """A variable of the commands in a sandbox whose value is a field of a Secret, as it was when this was pinned.

    `secret` is the Secret's name, `uid` and `version` find its values in the vault. The value itself is kept nowhere.
    """

    env: str
    secret: str
    field: str
    uid: str
    version: str


@dataclass(frozen=True)
class Used:
    """What a sandbox used at a moment, by its daemon's word: seconds of processors since its start, and bytes."""

    at: datetime
    cpu_s: int
    memory: int
    disk: int
    disk_size: int


@dataclass(frozen=True)
class Sandbox:
    """Head of a sandbox. Hashes are sha256 hex; `wake` asks for a kick when it comes up or is gone.

    `image` is as people name it, `pull` the same by its digest (None: what the machine under it has). `isolated`,
    `guard` and `about` are what its daemon says of itself (`journal.sandboxes.Greeting`). Its time
    counts from `started_at`, when its task was asked for last, to `gone_at`; `worked_at` is when somebody last had
    something done in it. `state_dir` is the folder that is saved; `restore` names the save that it must be filled from
    before anything is run, `restored_at` is when that was made, and `parting` is why it was let go after a last save.
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
    worked_at: datetime | None = None
    meter: Meter | None = None
    secrets: tuple[SecretVariable, ...] = ()
    pull: str | None = None
    state_dir: str | None = None
    restore: str | None = None
    restored_at: datetime | None = None
    parting: str | None = None
    used: Used | None = None

    @property
    def digest(self) -> str | None:
        """That of its image; None: it is made of what its machine has."""
        return None if self.pull is None else self.pull.partition("@")[2]


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


@dataclass(frozen=True)
class Ask:
    """A question to a running daemon that leaves nothing in the history (decision 21).

    It stands in one of a sandbox's few places, which is free again from `ends_at` on. `request` is JSON; `key` is the
    same for a question that is asked again: what changes something is then done once. `answered`: its answer stands
    beside it.
    """

    sandbox: str
    place: int
    id: str
    kind: str
    request: str
    ends_at: datetime
    key: str = ""
    answered: bool = False


@dataclass(frozen=True)
class AskAnswer:
    """What a daemon has said to an ask: its JSON, as it came."""

    id: str
    result: str
