"""A sandbox's task where machines are kept warm: a free one that is what was asked for, else a fresh one (decision 32)."""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass

from nodus_core.conversations.launching import ENROL_CODE, SANDBOX_ID
from nodus_core.journal.journal import Journal
from nodus_core.journal.ports import Clock, SandboxTasks, TaskReport, TaskRequest
from nodus_core.kernel.errors import ConditionFailed, CorruptRow, NodusError
from nodus_core.kernel.ids import digest
from nodus_core.kernel.states import SandboxState
from nodus_core.kernel.warm import WarmMachine

WARM = "NODUS_WARM"
"""Set in a machine of the pool: its daemon asks whose it is before it says hello."""

_WHOSE = (SANDBOX_ID, ENROL_CODE, WARM)

log = logging.getLogger(__name__)


def kind_of(request: TaskRequest) -> str:
    """The same for two tasks without GPUs that differ in nothing but whose they are."""
    told = {name: value for name, value in request.variables.items() if name not in _WHOSE}
    return digest(json.dumps([told, request.cpu, request.memory, request.image], sort_keys=True))


@dataclass(frozen=True)
class WarmTasks:
    """`SandboxTasks` that gives machines of the pool where they fit."""

    tasks: SandboxTasks
    journal: Journal
    clock: Clock

    def run(self, request: TaskRequest) -> str:
        """As of the port; none with GPUs waits. Raises `ConditionFailed` where the sandbox has changed: look again and decide anew."""
        task = None if request.gpus else self._take(request)
        if task is None:
            return self.tasks.run(request)
        try:
            self.tasks.tag(task, request.tags)
        except NodusError as error:
            log.warning("sandbox %s: its task %s has no tags: %s", request.sandbox, task, error)
        return task

    def find(self, sandbox: str) -> str | None:
        return self.tasks.find(sandbox)

    def stop(self, task: str, reason: str) -> None:
        self.tasks.stop(task, reason)

    def state(self, task: str) -> TaskReport:
        return self.tasks.state(task)

    def tag(self, task: str, tags: Mapping[str, str]) -> None:
        self.tasks.tag(task, tags)

    def _take(self, request: TaskRequest) -> str | None:
        """The task of a machine that has become the sandbox's; None: none is free."""
        sandbox, kind, issued = request.sandbox, kind_of(request), digest(request.variables[ENROL_CODE])
        for machine in self._waiting():
            if machine.kind != kind or not machine.is_up:
                continue
            try:
                self.journal.warm.bind(machine, sandbox, issued, self.clock.now())
            except ConditionFailed:
                if not self._still_waits(sandbox, issued):
                    raise
                continue  # another one was quicker, or it was dropped
            log.info("sandbox %s has got machine %s", sandbox, machine.id)
            return machine.task
        return None

    def _waiting(self) -> list[WarmMachine]:
        """The machines that wait; none where they cannot be read: no sandbox has to wait for that."""
        try:
            return self.journal.warm_machines()
        except CorruptRow as error:
            log.error("no machine of the pool is given away: %s", error)
            return []

    def _still_waits(self, sandbox: str, issued: str) -> bool:
        seen = self.journal.sandbox(sandbox)
        if seen is None or seen.state is not SandboxState.REQUESTED:
            return False
        return seen.task is None and seen.enrol_hash == issued
