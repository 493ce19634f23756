"""What a line can be told to do next (`kernel.decide`)."""

from dataclasses import dataclass

from nodus_core.kernel.sandboxes import Sandbox
from nodus_core.kernel.states import TurnState
from nodus_core.kernel.tasks import PlannedCall, Task


@dataclass(frozen=True)
class OpenTurn:
    number: int


@dataclass(frozen=True)
class StartSandbox:
    """Request a sandbox, or go on waiting for the one that `task` requested."""

    task: Task | None


@dataclass(frozen=True)
class CopySource:
    """Fetch the run's source, unless that is done, and copy it into its sandbox."""

    task: Task | None


@dataclass(frozen=True)
class RunSetup:
    task: Task | None


@dataclass(frozen=True)
class Route:
    """Choose the turn's model; with `task`, do the interrupted routing call again."""

    task: Task | None


@dataclass(frozen=True)
class Ask:
    """Make a model call; with `task`, make the interrupted one again."""

    round: int
    task: Task | None


@dataclass(frozen=True)
class Place:
    """Begin calls of the last message that have not begun, or refuse them where the sandbox is gone."""

    calls: tuple[PlannedCall, ...]


@dataclass(frozen=True)
class Watch:
    """Wait for calls that run in the sandbox."""

    tasks: tuple[Task, ...]


@dataclass(frozen=True)
class Expire:
    """The deadline has come: stop the conversation for it."""


@dataclass(frozen=True)
class ExtendSandbox:
    """Pay for the next period of the sandbox's time, or stop it for want of money."""


@dataclass(frozen=True)
class LetGo:
    """Wait until the sandbox, which was stopped for want of money or of anybody to use it, is gone."""

    sandbox: Sandbox


@dataclass(frozen=True)
class BookSandbox:
    """The sandbox is gone: book what its time has cost, and give back what was held for it."""

    sandbox: Sandbox


@dataclass(frozen=True)
class Resume:
    """Carry out what people have said of steps whose outcome was not known."""

    tasks: tuple[Task, ...]


@dataclass(frozen=True)
class Cut:
    """Settle what is open of a stopped run, once it has joined."""

    keys: tuple[str, ...]


@dataclass(frozen=True)
class FinishTurn:
    """`ends`: the conversation takes no more input after this turn."""

    state: TurnState
    ends: bool
    reason: str | None = None


@dataclass(frozen=True)
class End:
    """Stopped before or between turns: take no more input."""


@dataclass(frozen=True)
class ReturnUnread:
    """Settle the inputs that the ended conversation has not read: none of them gets a turn any more."""


@dataclass(frozen=True)
class Release:
    """Let the sandbox go and wait until it is gone."""

    sandbox: str


@dataclass(frozen=True)
class Close:
    """Nothing is left to do on this line."""


@dataclass(frozen=True)
class BeginSave:
    """Save the sandbox's folder; with `parting`, and then let the sandbox go, for this reason."""

    parting: str | None


@dataclass(frozen=True)
class FollowSave:
    """Wait for the save under way, and carry its end out."""


@dataclass(frozen=True)
class DropSaves:
    """Remove archives of these names from the store: they are not kept any more."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class Launch:
    """Start a Sandbox's machine, or go on waiting for it."""


@dataclass(frozen=True)
class Keep:
    """A Sandbox's machine runs: look whether it may go on, and rest."""


@dataclass(frozen=True)
class ExtendMachine:
    """Pay for the next period of a Sandbox's machine, or stop it for want of money."""


@dataclass(frozen=True)
class Pause:
    """Let a Sandbox's machine go, which is to stand still for this reason."""

    reason: str


@dataclass(frozen=True)
class Settle:
    """A Sandbox's machine is gone: show why, and start none until it is asked for."""

    sandbox: Sandbox


@dataclass(frozen=True)
class Rest:
    """Only an event from outside can move the line on; `reason` is the word that people see."""

    reason: str


OfSandbox = (
    BeginSave
    | FollowSave
    | DropSaves
    | Launch
    | Keep
    | ExtendMachine
    | Pause
    | Settle
    | ExtendSandbox
    | LetGo
    | BookSandbox
    | Release
)
"""What is decided about the line's sandbox."""

Decision = (
    OfSandbox
    | OpenTurn
    | StartSandbox
    | CopySource
    | RunSetup
    | Route
    | Ask
    | Place
    | Watch
    | Expire
    | Resume
    | Cut
    | FinishTurn
    | End
    | ReturnUnread
    | Close
    | Rest
)
