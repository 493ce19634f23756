"""What all commands of one daemon share: the reaper, the census, the marks, and the end of everything."""

import asyncio
import contextlib
import os
import secrets
import signal
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable

from sandboxd.execcore.capture import PipeReader
from sandboxd.execcore.census import Census, ProcessEntry, read_population, read_process
from sandboxd.execcore.execution import Execution
from sandboxd.execcore.reaper import Reaper
from sandboxd.execcore.spawner import Spawner, T
from sandboxd.execcore.spec import CommandUser, ExecSpec, Outcome
from sandboxd.execcore.tree import Tree, end_processes, freeze, send_signal, with_descendants

FIRST_GROUP = 70_000
LAST_GROUP = 131_071
"""Supplementary groups that mark commands; a user namespace maps groups below 131072 (docs/protocols.md §2)."""

_MAX_OPEN_TAILS = 128
"""Pipes of ended commands that are still read on behalf of background processes; beyond, the oldest is closed."""


class ProcessHost:
    """Starts commands and knows those that run.

    Args:
        user: whom commands run as.
        adopts_orphans: this process is pid 1 or a child subreaper.
    """

    def __init__(self, user: CommandUser, *, adopts_orphans: bool) -> None:
        self.user = user
        self._adopts_orphans = adopts_orphans
        self._spawner = Spawner()
        self._reaper = Reaper(adopts_orphans=adopts_orphans)
        self._born = _own_start()
        self._name = secrets.token_hex(4)
        self._census = Census(lambda: read_population(self._born))
        self._running: dict[str, Execution] = {}
        self._not_alone: set[str] = set()
        self._groups: dict[str, int] = {}
        self._last_group = LAST_GROUP
        self._tails: OrderedDict[str, PipeReader] = OrderedDict()
        self._moving = asyncio.Event()
        self._moving.set()

    def open(self) -> None:
        """Starts to wait for children; needs the running event loop of the main thread."""
        self._reaper.install()

    def close(self) -> None:
        """Lets go of pipes, the signal handler and the thread that starts commands; ends no process."""
        self._reaper.remove()
        self._spawner.close()
        running = (reader for execution in self._running.values() for reader in execution.readers)
        for reader in (*self._tails.values(), *running):
            reader.close()

    def confine(self, lay: Callable[[], T]) -> T:
        """Confines all that is started from now on; `lay` is called on the thread that starts it.

        Returns what it returns. Raises whatever `lay` raises: then nothing is confined.
        """
        return self._spawner.confine(lay)

    def start(self, spec: ExecSpec) -> Execution:
        """Starts a command.

        Raises:
            SpawnError: nothing was started.
        """
        mark = f"{self._name}.{secrets.token_hex(8)}"
        group = self._free_group() if self.user.uid is not None else None
        spawned = self._spawner.spawn(spec, mark, self.user, group)
        tree = Tree(spawned.pid, _start_of(spawned.pid, self._born), mark, group)
        death = self._reaper.watch(spawned.pid)
        execution = Execution(spec, tree, spawned.output_fds, death, self._end_tree)
        if group is not None:
            self._groups[mark] = group
        self._running[mark] = execution
        if len(self._running) > 1:
            self._not_alone.update(self._running)
        return execution

    async def run(self, execution: Execution) -> Outcome:
        """Waits for the outcome of a started command and forgets it; call it once."""
        mark = execution.tree.mark
        try:
            return await execution.finish()
        finally:
            del self._running[mark]
            self._not_alone.discard(mark)
            self._groups.pop(mark, None)
            for number, reader in enumerate(execution.readers):
                self._keep_reading(f"{mark}.{number}", reader)

    async def end_everything(self, grace_s: float) -> list[ProcessEntry]:
        """Ends all processes below the daemon, also what ended commands left behind."""
        return await end_processes(_below, self._census, grace_s)

    async def moving(self) -> None:
        """Waits until nothing is to stand still; what is started right after this disturbs nobody."""
        await self._moving.wait()

    @contextlib.asynccontextmanager
    async def frozen(self) -> AsyncIterator[bool]:
        """Lets all processes below the daemon stand still for a while; yields whether they all do.

        Whoever starts commands waits for `moving` meanwhile. For one freeze at a time.
        """
        stopped: list[ProcessEntry] = []
        self._moving.clear()
        try:
            yield await freeze(_below, self._census, stopped)
        finally:
            for entry in stopped:
                send_signal(entry, signal.SIGCONT)
            self._moving.set()

    async def _end_tree(self, tree: Tree, grace_s: float) -> list[ProcessEntry]:
        def members(population: dict[int, ProcessEntry]) -> list[ProcessEntry]:
            if not self._adopts_orphans or tree.mark in self._not_alone:
                return tree.members(population)
            leaders = frozenset(execution.tree.leader for execution in self._running.values())
            return tree.with_orphans(population, os.getpid(), leaders)

        return await end_processes(members, self._census, grace_s)

    def _free_group(self) -> int:
        taken = frozenset(self._groups.values())
        while True:
            self._last_group = FIRST_GROUP if self._last_group >= LAST_GROUP else self._last_group + 1
            if self._last_group not in taken:
                return self._last_group

    def _keep_reading(self, mark: str, reader: PipeReader) -> None:
        if reader.ended.done():
            return
        self._tails[mark] = reader
        reader.ended.add_done_callback(lambda _: self._tails.pop(mark, None))
        while len(self._tails) > _MAX_OPEN_TAILS:
            self._tails.popitem(last=False)[1].close()


def _below(population: dict[int, ProcessEntry]) -> list[ProcessEntry]:
    """All processes below the daemon."""
    children = [entry for entry in population.values() if entry.parent == os.getpid()]
    return with_descendants(children, population)


def _own_start() -> int:
    entry = read_process(os.getpid())
    if entry is None:
        raise RuntimeError("/proc shows this process as dead: a working /proc is needed to end commands.")
    return entry.started


def _start_of(pid: int, otherwise: int) -> int:
    """Start of a child that was just made; a child that is dead already counts from the daemon's own start."""
    try:
        entry = read_process(pid)
    except OSError:
        entry = None
    return otherwise if entry is None else entry.started
