"""The pool of machines that are started before anybody needs them: kept full, and free of what cannot be used.

The journal says which there are, ECS whether they live. Every step may be repeated, and be left off at any point: a
row without a task is dropped after a minute, a task without a row is an orphan (`task_sweep`).
"""

import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from nodus_core.conversations.launching import ENROL_CODE, SANDBOX_ID, START_LIMIT_S, told
from nodus_core.conversations.machine import Machine
from nodus_core.conversations.sandbox_ends import BELIEVED_MISSING_S
from nodus_core.conversations.warm_tasks import WARM, kind_of
from nodus_core.journal.journal import Journal
from nodus_core.journal.ports import Clock, Ids, SandboxTasks, TaskFleet, TaskReport, TaskRequest
from nodus_core.kernel.errors import ConditionFailed, NodusError
from nodus_core.kernel.ids import digest
from nodus_core.kernel.warm import WarmMachine

OLDEST = timedelta(days=1)
"""How long a machine waits for somebody: its hard deadline counts from its own start."""

AT_ONCE = 100
"""Tasks of one question to the provider."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Kept:
    """What one look at the pool came to: machines started, ended, and those that could not be."""

    started: int = 0
    ended: int = 0
    failed: int = 0


@dataclass(frozen=True)
class WarmPool:
    """`size` machines wait; 0: none. `made_of` says what a sandbox of the default settings is made of now."""

    journal: Journal
    tasks: SandboxTasks
    fleet: TaskFleet
    clock: Clock
    ids: Ids
    size: int = 0
    made_of: Callable[[], Machine] = Machine
    link: Mapping[str, str] = field(default_factory=dict[str, str])

    def keep(self, remaining: Callable[[], float]) -> Kept:
        """One look. It ends when no seconds are `remaining`; the next one goes on."""
        try:
            return self._keep(remaining)
        except NodusError as error:
            log.warning("the pool of warm sandboxes is left as it is: %s", error)
            return Kept(failed=1)

    def _keep(self, remaining: Callable[[], float]) -> Kept:
        there = sorted(self.journal.warm_machines(), key=lambda each: (each.created_at, each.id))
        if not there and not self.size:
            return Kept()
        machine = self.made_of() if self.size else None
        kind = kind_of(self._request(machine)) if machine else ""
        states = self._states(there)
        faults = [(each, self._fault(each, kind, states)) for each in there]
        sound = [each for each, fault in faults if fault is None]
        unwanted = [(each, fault) for each, fault in faults if fault is not None]
        unwanted += [(each, "there are more than are wanted") for each in sound[self.size :]]
        started = ended = failed = 0
        for each, why in unwanted:
            if remaining() > 0:
                gone = self._end(each, why)
                ended, failed = ended + gone, failed + (not gone)
        for _ in range(self.size - len(sound)):
            if remaining() > 0 and machine is not None:
                come = self._start(machine, kind)
                started, failed = started + come, failed + (not come)
        return Kept(started, ended, failed)

    def _states(self, machines: Sequence[WarmMachine]) -> dict[str, TaskReport]:
        tasks, states = [each.task for each in machines if each.task], dict[str, TaskReport]()
        for start in range(0, len(tasks), AT_ONCE):
            states |= self.fleet.states(tasks[start : start + AT_ONCE])
        return states

    def _fault(self, machine: WarmMachine, kind: str, states: Mapping[str, TaskReport]) -> str | None:
        """Why nobody should get a machine; None: it waits, or is coming up."""
        age = self.clock.now() - machine.created_at
        if machine.kind != kind:
            return "sandboxes are made otherwise now"
        if age >= OLDEST:
            return f"it has waited for {age}"
        phase = states[machine.task].phase if machine.task else "missing"
        if phase == "stopped" or (phase == "missing" and age.total_seconds() >= BELIEVED_MISSING_S):
            return f"its task is {phase}"
        if not machine.is_up and age.total_seconds() >= START_LIMIT_S:
            return f"its daemon has not come up within {START_LIMIT_S:.0f} s"
        return None

    def _end(self, machine: WarmMachine, why: str) -> bool:
        """Whether it has ended, or has become somebody's meanwhile. What is dropped and not stopped is an orphan."""
        try:
            self.journal.warm.drop(machine.id)
        except ConditionFailed:
            return True
        log.info("machine %s of the pool ends: %s", machine.id, why)
        if machine.task is None:
            return True
        try:
            self.fleet.stop(machine.task, f"NodusPool: {why}")
        except NodusError as error:
            log.warning("task %s of the pool was not stopped: %s", machine.task, error)
            return False
        return True

    def _start(self, machine: Machine, kind: str) -> bool:
        """Whether one was started: its row, its task, and the note of that."""
        name, code = self.ids.fresh("warm"), secrets.token_urlsafe(24)
        self.journal.warm.place(WarmMachine(name, kind, digest(code), self.clock.now()))
        try:
            task = self.tasks.run(self._request(machine, name, code))
        except NodusError as error:
            log.warning("machine %s of the pool was not started: %s", name, error)
            return False
        self.journal.warm.note_task(name, task)
        return True

    def _request(self, machine: Machine, name: str = "", code: str = "") -> TaskRequest:
        """For one machine of the pool; without its name and code it is still of the same kind."""
        return TaskRequest(
            name,
            {**told(machine, self.link), SANDBOX_ID: name, ENROL_CODE: code, WARM: "1"},
            cpu=machine.cpu,
            memory=machine.memory,
            tags={"nodus:warm": name, "nodus:egress": machine.egress},
            image=machine.pull,
        )
