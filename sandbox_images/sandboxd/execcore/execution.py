"""One command from its start to its outcome."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from sandboxd.execcore.capture import HeadTail, Logged, PipeReader
from sandboxd.execcore.census import ProcessEntry
from sandboxd.execcore.oom import count_oom_kills, was_out_of_memory
from sandboxd.execcore.reaper import Death
from sandboxd.execcore.spec import Captured, ExecSpec, ExecState, Outcome, StopReason, Usage
from sandboxd.execcore.tree import Tree
from sandboxd.redaction import Stream

_LINGER_S = 0.05
"""How long after the leader's death output is still waited for: what `> >(tee log)` prints comes after it."""

_DEATH_AFTER_FORCE_S = 2.0

EndTree = Callable[[Tree, float], Awaitable[list[ProcessEntry]]]


class Execution:
    """A started command. It is over when its leader dies, whoever still holds its output.

    Args:
        end_tree: ends all processes of the tree and returns those that cannot be ended.
    """

    def __init__(
        self,
        spec: ExecSpec,
        tree: Tree,
        output_fds: tuple[int, ...],
        death: asyncio.Future[Death],
        end_tree: EndTree,
    ) -> None:
        self.tree = tree
        self._spec = spec
        self._death = death
        self._end_tree = end_tree
        self._kept = HeadTail(spec.head_bytes, spec.tail_bytes)
        self.readers = tuple(
            PipeReader(
                fd,
                self._kept if spec.log is None else Logged(self._kept, spec.log, stream),
                Stream(spec.redactor),
            )
            for stream, fd in enumerate(output_fds, start=1)
        )
        self._stop: asyncio.Future[StopReason] = asyncio.get_running_loop().create_future()
        self._oom_kills = count_oom_kills()
        self._started_at = datetime.now(UTC)
        self._started_s = time.monotonic()

    def stop(self, reason: StopReason) -> None:
        """Asks for the end of the whole tree. The first reason stays; an ended command is left alone."""
        if not self._stop.done():
            self._stop.set_result(reason)

    async def finish(self) -> Outcome:
        """Waits for the end and tells how it came."""
        await asyncio.wait(
            {self._death, self._stop},
            timeout=self._spec.start_to_end_s,
            return_when=asyncio.FIRST_COMPLETED,
        )
        shut_down = self._stop.done() and self._stop.result() is StopReason.SHUTDOWN
        if self._death.done() and not shut_down:
            survivors = [] if self._spec.tty is None else await self._end_tree(self.tree, self._spec.grace_s)
            return await self._outcome(self._death.result(), None, _survivor_message(survivors))
        reason = self._stop.result() if self._stop.done() else StopReason.TIMEOUT
        self.stop(reason)
        survivors = await self._end_tree(self.tree, self._spec.grace_s)
        await asyncio.wait({self._death}, timeout=_DEATH_AFTER_FORCE_S)
        message = _survivor_message(survivors)
        if not self._death.done():
            return self._lost(reason, message or "The command could not be ended.")
        if shut_down:
            return self._lost(reason, "The sandbox was stopped while the command ran.")
        return await self._outcome(self._death.result(), reason, message)

    async def _outcome(self, death: Death, reason: StopReason | None, message: str | None = None) -> Outcome:
        captured, output_open = await self._last_output()
        exit_code, signum = _split_status(death.status)
        out_of_memory = reason is None and was_out_of_memory(
            exit_code, signum, self._oom_kills, count_oom_kills()
        )
        if out_of_memory:
            message = "The kernel ended the command because memory ran out."
        return Outcome(
            state=ExecState.EXITED,
            exit_code=exit_code,
            signal=signum,
            reason="oom" if out_of_memory else reason,
            message=message,
            captured=captured,
            output_open=output_open,
            usage=Usage(round(death.usage.ru_utime + death.usage.ru_stime, 3), death.usage.ru_maxrss),
            started_at=self._started_at,
            ended_at=death.ended_at,
            duration_s=death.monotonic_s - self._started_s,
        )

    def _lost(self, reason: StopReason, message: str) -> Outcome:
        captured, output_open = self._frozen()
        return Outcome(
            state=ExecState.LOST,
            exit_code=None,
            signal=None,
            reason=reason,
            message=message,
            captured=captured,
            output_open=output_open,
            usage=Usage(0.0, 0),
            started_at=self._started_at,
            ended_at=datetime.now(UTC),
            duration_s=time.monotonic() - self._started_s,
        )

    async def _last_output(self) -> tuple[Captured, bool]:
        for reader in self.readers:
            reader.drain()
        await asyncio.wait({reader.ended for reader in self.readers}, timeout=_LINGER_S)
        return self._frozen()

    def _frozen(self) -> tuple[Captured, bool]:
        """What was kept, and whether a process still holds the output; nothing more is kept."""
        for reader in self.readers:
            reader.flush()
        captured = self._kept.captured()
        for reader in self.readers:
            reader.freeze()
        return captured, not all(reader.ended.done() for reader in self.readers)


def _split_status(status: int) -> tuple[int | None, int | None]:
    if os.WIFSIGNALED(status):
        return None, os.WTERMSIG(status)
    return os.WEXITSTATUS(status), None


def _survivor_message(survivors: list[ProcessEntry]) -> str | None:
    if not survivors:
        return None
    pids = ", ".join(str(entry.pid) for entry in survivors[:10])
    return f"{len(survivors)} processes of the command could not be ended, the kernel holds them: {pids}."
