"""What the reactor does with what it hears: kicks for lines, lifecycle events for the bus.

Everything here may be lost, late or doubled; nothing depends on it but speed.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from nodus_core.conversations.kicks import Kicks
from nodus_core.conversations.waiters import Waiters
from nodus_core.journal.ports import Event, Events
from nodus_core.kernel import metering
from nodus_core.kernel.errors import ConditionFailed
from nodus_core.kernel.ids import is_warm_machine
from nodus_core.kernel.states import CommandState, SandboxState

log = logging.getLogger(__name__)

_NEWS = {
    state.value for state in (SandboxState.RUNNING, SandboxState.GONE, CommandState.DONE, CommandState.LOST)
}
"""States of a sandbox or a command that its line would want to know of."""

Image = Mapping[str, Mapping[str, Any]]
"""A row as a stream record holds it: attribute name → type → value."""


@dataclass(frozen=True)
class Reactions:
    """Use cases of the reactor. Each raises `NodusError`; a `RetryableError` when it should be tried again."""

    kicks: Kicks
    events: Events

    def row_changed(self, image: Image) -> Event | None:
        """A row with an `outbox` mark was written: kicks its line. The event to tell of it, if there is one."""
        noun, _, rest = _string(image, "pk").partition("#")
        match noun:
            case "conv":
                self.kicks.kick(rest)
            case "sb" if _string(image, "state") in _NEWS:
                self._sandbox_changed(rest)
            case "sb":
                pass  # the line that marked the row is waiting for its end: nothing is news before that
            case "acct":
                Waiters(self.kicks).serve(rest)
            case "obj":
                return _object_changed(image)
            case _:
                log.warning("a row of partition %r is marked for the reactor and means nothing to it", noun)
        return None

    def tell(self, events: Sequence[Event]) -> None:
        """Puts lifecycle events on the bus: after the kicks, so that a sick bus stops none of them."""
        if events:
            self.events.put(events)

    def line_died(self, execution: str) -> None:
        """An execution ended without saying so: its line is taken up again at once."""
        line, _, generation = execution.rpartition("-")
        if line and generation.isdigit():
            self.kicks.kick(line, dead_generation=int(generation))
        else:
            log.warning("execution %r is not named by a line and its generation", execution)

    def deadline_came(self, line: str) -> None:
        """The moment of a run's deadline: whoever kicks its line then stops it."""
        self.kicks.kick(line)

    def task_stopped(
        self,
        sandbox_id: str,
        task: str,
        reason: str,
        began: datetime | None = None,
        ended: datetime | None = None,
    ) -> None:
        """A sandbox's task has ended, by whomever: its line looks what that means. `began`, `ended`: its own times.

        The end of another task than the one on record means nothing: that one was never the sandbox's.
        """
        journal = self.kicks.journal
        if is_warm_machine(sandbox_id):
            sandbox_id = self._of_the_pool(sandbox_id)
        sandbox = journal.sandbox(sandbox_id)
        if sandbox is None:
            log.warning("task of unknown sandbox %r has stopped", sandbox_id)
            return
        if sandbox.task not in (None, task):
            log.info("task %s has stopped, and sandbox %s has another one", task, sandbox_id)
            return
        try:
            began, at = metering.counted(sandbox, began, ended, self.kicks.clock.now())
            journal.sandboxes.gone(sandbox_id, reason, at, began=began)
        except ConditionFailed:
            log.info("sandbox %s was known to be gone", sandbox_id)
        self.kicks.kick(sandbox.conversation)

    def _of_the_pool(self, machine: str) -> str:
        """The sandbox that a machine of the pool has become; nobody gets one that has ended before."""
        journal = self.kicks.journal
        try:
            journal.warm.drop(machine)
        except ConditionFailed:
            bound = journal.bound_machine(machine)
            return bound.sandbox if bound else machine
        return machine

    def _sandbox_changed(self, sandbox_id: str) -> None:
        sandbox = self.kicks.journal.sandbox(sandbox_id)
        if sandbox is not None:
            self.kicks.kick(sandbox.conversation)


def _object_changed(image: Image) -> Event:
    """`AgentRunChanged` and the like; ids only, never contents."""
    _, org, project, kind = _string(image, "pk").split("#")
    status: Mapping[str, Any] = image.get("status", {}).get("M", {})
    detail = {
        "organization": org,
        "project": project,
        "kind": kind,
        "name": _string(image, "sk"),
        "uid": _string(image, "uid"),
        "resourceVersion": str(image.get("version", {}).get("N", "")),
    }
    phase = status.get("phase", {}).get("S")
    return Event(f"{kind}Changed", {**detail, **({"phase": phase} if phase else {})})


def _string(image: Image, name: str) -> str:
    return str(image.get(name, {}).get("S", ""))
