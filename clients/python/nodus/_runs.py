"""Handles of runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from nodus._agentruns import AgentRunsFlows
from nodus._client import AnyClient, AsyncClient, Client, default_client
from nodus._flow import Blocking, Concurrent, Flow, collected, operation, reading
from nodus._handles import Handle
from nodus._record import Record
from nodus._waiting import waiting
from nodus.errors import (
    OutcomeUnknownError,
    RunBlockedError,
    RunFailedError,
    ServerError,
    ServiceUnavailableError,
)

FINISHED = frozenset({"Succeeded", "Failed", "Cancelled"})
# Waits that end only when a person does something (NOD-034, NODQ-03), and what that is.
FOR_A_PERSON = {
    "MaxCostReached": "its cost limit is reached: cancel it and start a new run with a higher limit",
    "NeedsResolution": "the outcome of a step is unknown: look at `status.unresolved`, then resolve or cancel it",
    "TaskActionRequired": "a task needs a decision: look at its team view",
}
_LIVE_SANDBOX = frozenset({"Pending", "Starting", "Running", "Paused", "Stopping"})
CLEAN_UP_SECONDS = 120.0


Records = list[Record]


class AgentRunFlows(Handle):
    """A handle to one run."""

    @reading
    def status(self) -> Flow[Record]:
        """The run's status now; each access reads it from the server."""
        return (yield from self._status())

    @operation
    def wait(self, timeout: float | None = None) -> Flow[Record]:
        """Wait until the run has finished, or stands still until somebody acts, and return its status.

        A run that is kept alive stands still after each answer (reason ``MessageWait``). Every phase returns;
        nothing is raised for a failed run (NODQ-11).

        Args:
            timeout: seconds; ``None``: as long as it takes.

        Raises:
            WaitTimeoutError: the time is over; the run goes on.
        """

        def late(status: Record | None) -> str:
            return f"run {self.name} is {_shown(status)} after {timeout:g} s; it goes on"

        return (yield from self._until(at_rest, timeout, late))

    @operation
    def send(self, key: str, text: str) -> Flow[Record]:
        """Send the run its next prompt (NOD-188); a run that works reads it after its current turn.

        Returns what was accepted; ``.turn`` is the number of the turn that the message gets. ``wait()`` then
        returns when that turn is over.

        Args:
            key: the message's key: the same key and text again is delivered once.
            text: the prompt, at most 256 KiB.

        Raises:
            AgentRunFinishedError: the run takes no messages any more.
            MessageKeyConflictError: the key was used for another text; nothing was delivered.
        """
        return (yield from AgentRunsFlows.send(self._runs, self.name, key, text))

    @operation
    def answer(self) -> Flow[str]:
        """The whole answer of the latest finished turn (NOD-067, NOD-069).

        Raises:
            AnswerNotReadyError: there is none yet; ``wait()`` first.
        """
        return (yield from AgentRunsFlows.answer(self._runs, self.name))

    @operation
    def steps(self) -> Flow[Records]:
        """What the run did so far, in order (NOD-071)."""
        return (yield from collected(AgentRunsFlows.steps(self._runs, self.name)))

    @operation
    def team(self) -> Flow[Record]:
        """How the run and its subagents stand: ``summary``, ``items``, ``verification`` (NOD-513)."""
        return (yield from AgentRunsFlows.team(self._runs, self.name))

    @operation
    def resolve(
        self,
        step: str,
        *,
        happened: bool,
        text: str | None = None,
        exit_code: int | None = None,
        request_key: str | None = None,
    ) -> Flow[Record]:
        """Say what became of a step whose outcome is not known, and return the run's status.

        The run goes on when no such step is left; ``status.unresolved`` names them.

        Args:
            step: the step's name, for example ``turn-1.tool.run_command.2``.
            happened: whether it took effect. A model call, or a command whose sandbox lives, is made again if not; where
                the sandbox is gone, the model hears that its command did not run, and a setup runs in the new one.
            text: what it put out, if it happened and that is known: a command's output. A model call that happened
                needs it: the reply's text.
            exit_code: how a command or the setup ended, if it happened.
            request_key: the same key and meaning again gives the first answer; ``None``: a new one.

        Raises:
            InvalidError: such a step cannot have this result, or needs one.
            ConflictError: somebody has resolved it, or nobody is asked about it; the message says which.
        """
        resolved = yield from AgentRunsFlows.resolve(
            self._runs,
            self.name,
            step,
            happened=happened,
            text=text,
            exit_code=exit_code,
            request_key=request_key,
        )
        return status_of(resolved)

    @operation
    def cancel(self, *, timeout: float = CLEAN_UP_SECONDS) -> Flow[Record]:
        """End the run and delete its workspace; returns its status when both are done (NOD-523).

        A run that has finished already stays as it is.

        Args:
            timeout: seconds to wait for it; ``0`` asks and does not wait.

        Raises:
            WaitTimeoutError: asked for, but not done in time; it will be.
        """
        asked = status_of((yield from AgentRunsFlows.cancel(self._runs, self.name)))
        if timeout <= 0 or _gone(asked):
            return asked

        def late(status: Record | None) -> str:
            return f"run {self.name} is {_shown(status)} {timeout:g} s after its cancel"

        return (yield from self._until(_gone, timeout, late))

    def _status(self, within: float | None = None) -> Flow[Record]:
        return status_of((yield from AgentRunsFlows.get(self._runs, self.name, within=within)))

    def _until(
        self, done: Callable[[Record], bool], timeout: float | None, late: Callable[[Record | None], str]
    ) -> Flow[Record]:
        return waiting(self._client.wire, self._status, done, timeout=timeout, describe=late)

    @property
    def _runs(self) -> AgentRunsFlows:
        return self._client.agentruns


class AgentRun(AgentRunFlows, Blocking):
    """A handle to one run; make it with ``agent.submit(…)`` or ``AgentRun.from_name(…)``."""

    @classmethod
    def from_name(cls, name: str, *, project: str | None = None, client: Client | None = None) -> AgentRun:
        """A handle to an existing run; nothing is sent yet (NOD-514).

        Args:
            name: the run's name.
            project: its project; ``None``: the configured one.
            client: where to look; ``None``: the configured server.
        """
        return cls(name, client=(client or default_client()).in_project(project))


class AsyncAgentRun(AgentRunFlows, Concurrent):
    """``AgentRun`` for asyncio: the same, awaited; ``await run.status`` reads it."""

    @classmethod
    def from_name(cls, name: str, *, client: AsyncClient, project: str | None = None) -> AsyncAgentRun:
        """As of ``AgentRun``; the client is yours to open and to close."""
        return cls(name, client=client.in_project(project))


RunT = TypeVar("RunT", bound=AgentRunFlows)


def start_run(
    kind: type[RunT], client: AnyClient, agent: str, spec: Mapping[str, Any], name: str | None
) -> Flow[RunT]:
    """Create a run of ``agent``; without a name it gets one of its own.

    Raises:
        OutcomeUnknownError: no answer came, or none that tells whether the run was stored; it names the run.
    """
    chosen = name or f"{agent[:50].rstrip('-.')}-{os.urandom(5).hex()}"
    run = kind(chosen, client=client)
    try:
        yield from AgentRunsFlows.create(client.agentruns, chosen, spec)
    except (OutcomeUnknownError, ServerError, ServiceUnavailableError) as error:
        why = f"it is not known whether run {chosen} was created: {error.message}"
        look = f"look at it with nodus.AgentRun.from_name({chosen!r}, project={run.project!r}) before you submit again"
        raise OutcomeUnknownError(f"{why}; {look}", run=run) from error
    return run


def answer_of(run: AgentRunFlows, timeout: float | None) -> Flow[str]:
    """Wait for the run's end and return its answer (NOD-511).

    Raises:
        RunFailedError: the run ended otherwise than ``Succeeded``.
        RunBlockedError: the run does not go on by itself.
        WaitTimeoutError: the time is over.
    """
    status = yield from AgentRunFlows.wait(run, timeout)
    if status.get("phase") == "Succeeded":
        return (yield from AgentRunFlows.answer(run))
    why = f"run {run.name} is {_shown(status)}"
    if status.get("message"):
        why += f": {status.get('message')}"
    if status.get("phase") in FINISHED:
        raise RunFailedError(why, run=run, status=status)
    hint = FOR_A_PERSON.get(str(status.get("reason")), "it waits for a message")
    raise RunBlockedError(f"{why} ({hint})", run=run, status=status)


def status_of(seen: Record) -> Record:
    """An object's status; empty where it shows none."""
    status = seen.get("status")
    return status if isinstance(status, Record) else Record({})


def at_rest(status: Record) -> bool:
    """Whether a run with this status does not go on by itself: it has finished, or waits for somebody."""
    if status.get("phase") in FINISHED:
        return True
    reason = status.get("reason")
    return status.get("phase") == "Waiting" and (reason == "MessageWait" or reason in FOR_A_PERSON)


def _gone(status: Record) -> bool:
    sandbox = status.get("sandbox")
    alive = isinstance(sandbox, Record) and sandbox.get("phase") in _LIVE_SANDBOX
    return status.get("phase") in FINISHED and not alive


def _shown(status: Record | None) -> str:
    if status is None or not status.get("phase"):
        return "not started"
    return (
        f"{status.get('phase')} ({status.get('reason')})"
        if status.get("reason")
        else str(status.get("phase"))
    )
