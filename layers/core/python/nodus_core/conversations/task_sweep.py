"""Tasks and sandboxes are held against each other, both ways (FLD-10, decision 31).

a task that no sandbox of the journal wants ──► it is stopped
a sandbox whose task is gone                ──► its line is kicked, which looks and records it

A sandbox's row is written before its task is asked for, so that a task without one was never, or is no longer, wanted.
Every judgement is made of a row that was read after the task was listed. Both ways may be repeated.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from nodus_core.conversations.kicks import Kicks
from nodus_core.conversations.sandbox_ends import BELIEVED_MISSING_S
from nodus_core.journal.keys import LIVE_SHARDS
from nodus_core.journal.ports import FoundTask, TaskFleet
from nodus_core.kernel.errors import CorruptRow, NodusError
from nodus_core.kernel.ids import is_warm_machine
from nodus_core.kernel.sandboxes import Sandbox
from nodus_core.kernel.states import ALIVE_SANDBOXES, SandboxState

AT_ONCE = 100
"""Tasks of one question."""

WAITING = ""
"""In the place of the sandbox of a machine that waits for one (`warm_pool`)."""

MOST_NAMED = 5
"""Tasks of others that one line of the log names."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Reconciled:
    """What one look came to.

    `stopped`: tasks that no sandbox wants, ended; `failed`: tasks and lines that could not be seen to, which the next
    look sees again; `missed`: lines kicked because the task of their sandbox is gone; `foreign`: tasks that this
    deployment has not started, left alone. `finished`: all was looked at, before the time was up.
    """

    stopped: int = 0
    failed: int = 0
    missed: int = 0
    foreign: int = 0
    finished: bool = True


@dataclass
class _Tally:
    """What a look has seen until now: tasks that are `listed`, ids of sandboxes that are `housed` by one of them."""

    stopped: int = 0
    failed: int = 0
    missed: int = 0
    foreign: list[FoundTask] = field(default_factory=list[FoundTask])
    listed: set[str] = field(default_factory=set[str])
    housed: set[str] = field(default_factory=set[str])

    def result(self, *, finished: bool) -> Reconciled:
        return Reconciled(self.stopped, self.failed, self.missed, len(self.foreign), finished)


@dataclass(frozen=True)
class TaskSweep:
    """Looks at all tasks of the place where sandboxes run, and at all sandboxes that are not gone."""

    fleet: TaskFleet
    kicks: Kicks

    def reconcile(self, remaining: Callable[[], float]) -> Reconciled:
        """One look. `remaining`: seconds that it may still take; it ends when they are over, and says so."""
        tally = _Tally()
        try:
            finished = self._look(tally, remaining)
        except NodusError as error:
            log.warning("tasks and sandboxes were not all held against each other: %s", error)
            finished = False
        if tally.foreign:
            named = "; ".join(f"{each.task} ({each.about})" for each in tally.foreign[:MOST_NAMED])
            log.info("%s tasks of others are left alone: %s", len(tally.foreign), named)
        return tally.result(finished=finished)

    def _look(self, tally: _Tally, remaining: Callable[[], float]) -> bool:
        if remaining() <= 0:
            return False
        live = self._live()
        held = {each.task for each in live.values() if each.task and each.state in ALIVE_SANDBOXES}
        for page in self.fleet.pages():
            tally.listed.update(page)
            self._end_unwanted([task for task in page if task not in held], tally)
            if remaining() <= 0:
                return False
        unhoused = [*self._unhoused(live, tally)]
        for start in range(0, len(unhoused), AT_ONCE):
            if remaining() <= 0:
                return False
            self._kick_gone(unhoused[start : start + AT_ONCE], tally)
        return True

    # --- tasks without a sandbox ---

    def _end_unwanted(self, tasks: Sequence[str], tally: _Tally) -> None:
        """Stops those of the tasks that no sandbox wants."""
        found = [self._as_it_became(each) for each in self.fleet.whose(tasks)] if tasks else []
        heads, broken = self._heads(sorted({each.sandbox for each in found if each.sandbox}))
        for each in found:
            if each.sandbox is None:
                tally.foreign.append(each)
            elif each.sandbox == WAITING:
                continue
            elif each.sandbox in broken:
                tally.failed += 1  # who cannot be read may want it
            elif (why := _why_unwanted(each, heads.get(each.sandbox))) is None:
                tally.housed.add(each.sandbox)
            else:
                self._end(each, why, tally)

    def _as_it_became(self, found: FoundTask) -> FoundTask:
        """A task of the pool as that of the sandbox whose it is now, or as one that waits for somebody."""
        if found.sandbox is None or not is_warm_machine(found.sandbox):
            return found
        journal = self.kicks.journal
        machine = journal.warm_machine(found.sandbox)
        if machine is not None and machine.task in (None, found.task):
            return replace(found, sandbox=WAITING)
        # Read in this order: one that is not there any more may just have become somebody's.
        bound = journal.bound_machine(found.sandbox)
        return found if bound is None else replace(found, sandbox=bound.sandbox)

    def _end(self, found: FoundTask, why: str, tally: _Tally) -> None:
        try:
            self.fleet.stop(found.task, f"NodusOrphan: {why}")
        except NodusError as error:
            tally.failed += 1
            log.warning("task %s, which nobody wants, was not stopped: %s", found.task, error)
        else:
            tally.stopped += 1
            log.warning("task %s is stopped: %s", found.task, why)

    # --- sandboxes without a task ---

    def _unhoused(self, live: Mapping[str, Sandbox], tally: _Tally) -> Iterator[Sandbox]:
        """Sandboxes that should have a task by now, and have none that is meant to run."""
        late = self.kicks.clock.now() - timedelta(seconds=BELIEVED_MISSING_S)
        for sandbox in live.values():
            if sandbox.id in tally.housed or sandbox.task in tally.listed:
                continue
            if sandbox.task is None and sandbox.state is SandboxState.REQUESTED:
                continue  # its line is about to ask for one, and looks again within half a minute
            if (sandbox.started_at or sandbox.created_at) <= late:
                yield sandbox

    def _kick_gone(self, sandboxes: Sequence[Sandbox], tally: _Tally) -> None:
        """Kicks the lines of those whose task has ended, also before it was noted."""
        states = self.fleet.states([each.task for each in sandboxes if each.task])
        for sandbox in sandboxes:
            if sandbox.task is not None and states[sandbox.task].phase not in ("stopped", "missing"):
                continue
            try:
                tally.missed += self.kicks.kick(sandbox.conversation)
            except NodusError as error:
                tally.failed += 1
                log.error("line %s of sandbox %s was not kicked: %s", sandbox.conversation, sandbox.id, error)

    # --- rows ---

    def _live(self) -> dict[str, Sandbox]:
        journal, found = self.kicks.journal, dict[str, Sandbox]()
        for shard in LIVE_SHARDS:
            found |= self._heads([*journal.live_sandboxes(shard)])[0]
        return {name: each for name, each in found.items() if each.state is not SandboxState.GONE}

    def _heads(self, names: Sequence[str]) -> tuple[dict[str, Sandbox], set[str]]:
        """The sandboxes of these ids that have a row, and the ids of rows that cannot be read."""
        journal, broken = self.kicks.journal, set[str]()
        try:
            return journal.sandboxes_at(names), broken
        except CorruptRow:
            found: dict[str, Sandbox] = {}
        for name in names:
            try:
                found |= journal.sandboxes_at([name])
            except CorruptRow as error:
                broken.add(name)
                log.error("sandbox %s cannot be held against its task: %s", name, error)
        return found, broken


def _why_unwanted(found: FoundTask, sandbox: Sandbox | None) -> str | None:
    """Why a task of ours is not wanted; None: it is, or it may be the one that is just being asked for."""
    if sandbox is None:
        return f"there is no sandbox {found.sandbox}"
    if sandbox.state not in ALIVE_SANDBOXES:
        return f"sandbox {sandbox.id} is {sandbox.state}"
    if sandbox.task not in (None, found.task):
        return f"sandbox {sandbox.id} has another task: {sandbox.task}"
    return None
