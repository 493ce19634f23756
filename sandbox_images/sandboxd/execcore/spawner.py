"""The one thread that starts commands."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from sandboxd.execcore.spawn import Spawned, spawn
from sandboxd.execcore.spec import CommandUser, ExecSpec

T = TypeVar("T")


class Spawner:
    """Starts each command from the same thread, which does nothing else.

    What is laid on that thread alone, a filter of system calls, every command has from its first instruction,
    and the daemon's other threads have not; nothing needs to run between fork and exec.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="spawner")

    def confine(self, lay: Callable[[], T]) -> T:
        """Calls `lay` on the thread: what it does there, all commands inherit from now on.

        Returns what it returns, and raises what it raises.
        """
        return self._thread.submit(lay).result()

    def spawn(self, spec: ExecSpec, mark: str, user: CommandUser, group_mark: int | None) -> Spawned:
        """Starts a command and waits until it is started.

        Raises:
            SpawnError: nothing was started.
        """
        return self._thread.submit(spawn, spec, mark, user, group_mark).result()

    def close(self) -> None:
        """Ends the thread; no command is started any more."""
        self._thread.shutdown()
