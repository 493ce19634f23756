"""Small ports that use cases need: time, fresh ids, crash points, and the services that are told things.

Every call to a service may be repeated. Each raises `RetryableError` when trying later may help, and
`TerminalError` when the request itself is refused (a missing right, an unknown machine or cluster).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """The present moment, in UTC."""
        ...

    def sleep(self, seconds: float) -> None: ...


class Ids(Protocol):
    def fresh(self, prefix: str) -> str:
        """An id that nobody has had before (claimants, uids, write tokens)."""
        ...


class CrashPoints(Protocol):
    def reach(self, point: str) -> None:
        """Called at every named place; kills the process there in a crash test, else does nothing."""
        ...


class NoCrash:
    """Production's crash points: none."""

    def reach(self, point: str) -> None:
        """Nothing happens here."""


class Executions(Protocol):
    def start(self, line: str, generation: int) -> None:
        """Starts the execution that works on a line in one generation; one that exists already is fine."""
        ...


class Schedules(Protocol):
    def kick_at(self, line: str, at: datetime) -> None:
        """Asks for a kick of a line at a moment, or up to a minute later; one that was asked for already is fine."""
        ...


TaskPhase = Literal["pending", "running", "stopped", "missing"]


@dataclass(frozen=True)
class TaskReport:
    """How the task that holds a sandbox is. `missing`: nobody knows it, or it stopped long ago."""

    phase: TaskPhase
    reason: str | None = None
    """Why it stopped, as far as is known."""

    at: datetime | None = None
    """When it stopped, as far as is known."""

    began: datetime | None = None
    """When its time began to cost, as far as is known; of one that stopped before, when it stopped."""


@dataclass(frozen=True)
class TaskRequest:
    """The task that a sandbox is to have, or a warm machine under its own id."""

    sandbox: str
    variables: Mapping[str, str] = field(repr=False)
    """The daemon's environment, with the code that it enrols with."""

    cpu: int | None = None
    """In units of 1/1024 processor; None: as the task definition says."""

    memory: int | None = None
    """In MiB; None: as the task definition says."""

    tags: Mapping[str, str] = field(default_factory=dict[str, str])
    image: str | None = None
    """What it is made of, by its digest; None: what the task definition names."""

    gpus: int = 0
    """With some it is run on a machine that has them."""


class SandboxTasks(Protocol):
    """The tasks that hold sandboxes (docs/protocols.md §3)."""

    def run(self, request: TaskRequest) -> str:
        """Starts the sandbox's task, unless it has one, and returns its ARN.

        A task that stopped before its ARN was noted is still the sandbox's one task where the provider remembers
        it (ECS does for a day); where it does not, another one is started, whose code replaces the first one's.

        Raises `RetryableError` when there is no capacity now.
        """
        ...

    def find(self, sandbox: str) -> str | None:
        """The ARN of a sandbox's task that is meant to run; None: there is none, or it stopped.

        A stopped task is known only by the ARN that was noted when it was started.
        """
        ...

    def stop(self, task: str, reason: str) -> None:
        """Asks for the end of a task; one that is stopped or unknown is fine."""
        ...

    def state(self, task: str) -> TaskReport: ...

    def tag(self, task: str, tags: Mapping[str, str]) -> None:
        """Gives a task tags, beside those that it has."""
        ...


@dataclass(frozen=True)
class FoundTask:
    """A task that is meant to run. `sandbox`: the id under which this deployment has started it, a sandbox's or that of
    a warm machine; None: it has not.

    `about` says what it is by its own word: its family, and who has started it.
    """

    task: str
    sandbox: str | None
    about: str


class TaskFleet(Protocol):
    """All the tasks of the place where sandboxes run, whoever has started them. Lists may lag behind."""

    def pages(self) -> Iterator[Sequence[str]]:
        """The ARNs of all tasks that are meant to run, at most 100 at a time, read as they are asked for."""
        ...

    def whose(self, tasks: Sequence[str]) -> list[FoundTask]:
        """What is known of at most 100 tasks; those that nobody knows any more, or that are to end, are left out."""
        ...

    def states(self, tasks: Sequence[str]) -> dict[str, TaskReport]:
        """How each of at most 100 tasks is."""
        ...

    def stop(self, task: str, reason: str) -> None:
        """Asks for the end of a task; one that is stopped or unknown is fine."""
        ...


class ImageRegistry(Protocol):
    """A place that images are pulled from."""

    def digest(self, repository: str, version: str, host: str) -> str:
        """The digest (`sha256:…`) of an image; `version` is a tag or a digest.

        Raises `RetryableError` when the registry does not answer now, `TerminalError` when it has no such image or
        gives it to nobody without credentials: the message is for whoever has named the image.
        """
        ...


class Bell(Protocol):
    def ring(self, connection: str) -> bool:
        """Tells the daemon at the other end to pull now. False: the connection is gone, which is no error."""
        ...


class Wires(Protocol):
    def post(self, connection: str, text: str) -> bool:
        """Sends a message over an open WebSocket connection. False: it is gone, which is no error."""
        ...


@dataclass(frozen=True)
class Event:
    """A lifecycle event: its type (noun and past tense, `RunSettled`), its details (ids, never contents)."""

    type: str
    detail: dict[str, Any] = field(default_factory=dict[str, Any])
    at: datetime | None = None


class Events(Protocol):
    def put(self, events: Sequence[Event]) -> None:
        """Puts all events on the bus, some perhaps twice. Raises `RetryableError` when some were refused."""
        ...
