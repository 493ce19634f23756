"""The terminals of one daemon: opens them, and passes on what people type and see."""

import asyncio
import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sandboxd.execcore.execution import Execution
from sandboxd.execcore.host import ProcessHost
from sandboxd.execcore.spec import ExecSpec, Outcome, SpawnError
from sandboxd.requests import TerminalRequest
from sandboxd.results import signal_name
from sandboxd.terminals.frames import said
from sandboxd.terminals.pseudo import in_control
from sandboxd.terminals.terminal import Terminal

logger = logging.getLogger(__name__)

MOST_OPEN = 8
"""Terminals with a running program (docs/limits.md)."""

_MOST_ENDED = 16
_ENDED_FOR_S = 300.0
_LOOK_EVERY_S = 0.5

Say = Callable[[str], None]


@dataclass
class _Kept:
    terminal: Terminal
    ended_s: float | None = None


class TerminalDesk:
    """Opens terminals and speaks with those who watch them.

    Args:
        ring: asks for a pull: somebody waits for a terminal that is not here yet.
    """

    def __init__(self, host: ProcessHost, ring: Callable[[], None] = lambda: None) -> None:
        self._host = host
        self.ring = ring
        self.say: Say = lambda text: None
        self._kept: dict[str, _Kept] = {}
        self._looking: asyncio.Task[None] | None = None

    def open(self, name: str, request: TerminalRequest, shell: str, env: Mapping[str, str]) -> Execution:
        """Starts a shell, or a command by it, on a new pseudo-terminal.

        Raises:
            SpawnError: nothing was started.
        """
        if sum(kept.ended_s is None for kept in self._kept.values()) >= MOST_OPEN:
            raise SpawnError("no_room", f"{MOST_OPEN} terminals are open in this sandbox; end one of them.")
        argv = (shell,) if request.command is None else (shell, "-c", request.command)
        try:
            terminal = Terminal(
                self._host.user, request.size, self._sender(name), asyncio.get_running_loop().call_later
            )
        except OSError as error:
            raise SpawnError("spawn", f"The sandbox has no terminal to give: {error.strerror}.") from error
        try:
            execution = self._host.start(
                ExecSpec(
                    argv=in_control(argv),
                    cwd=request.cwd,
                    env={**env, "TERM": request.term},
                    tty=terminal.pseudo.command_side,
                    spares=True,
                )
            )
        except SpawnError:
            terminal.pseudo.handed_over()
            terminal.pseudo.close()
            raise
        terminal.pseudo.handed_over()
        self._kept[name] = _Kept(terminal)
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
        return execution

    def ended(self, name: str, outcome: Outcome) -> None:
        """The program of a terminal is gone, and all that it has started."""
        kept = self._kept[name]
        kept.ended_s = time.monotonic()
        signum = None if outcome.signal is None else signal_name(outcome.signal)
        kept.terminal.ended({"exitCode": outcome.exit_code, "signal": signum})

    def hear(self, text: str) -> None:
        """Takes a message of the bell that is more than a ring."""
        try:
            message = json.loads(text)
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict):
            self.ring()
            return
        kept = self._kept.get(str(message.get("terminal")))
        if kept is None:
            self.ring()  # it may be among what waits to be pulled
            return
        connection, frame = message.get("from"), said(message.get("frame"))
        if isinstance(connection, str) and message.get("gone") is True:
            kept.terminal.leave(connection)
        elif isinstance(connection, str) and frame is not None:
            kept.terminal.hear(connection, frame)

    def close(self) -> None:
        """Hangs up all terminals."""
        if self._looking is not None:
            self._looking.cancel()
        for kept in self._kept.values():
            kept.terminal.pseudo.close()

    def _sender(self, name: str) -> Callable[[str, dict[str, Any]], None]:
        def send(connection: str, frame: dict[str, Any]) -> None:
            message = {"action": "terminal", "terminal": name, "to": connection, "frame": frame}
            self.say(json.dumps(message, separators=(",", ":")))

        return send

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            for kept in tuple(self._kept.values()):
                kept.terminal.look()
            self._forget()

    def _forget(self) -> None:
        """Lets go of terminals that ended a while ago, the oldest first where there are many."""
        ended = [(kept.ended_s, name) for name, kept in self._kept.items() if kept.ended_s is not None]
        ended.sort()
        now = time.monotonic()
        for ended_s, name in ended[: max(len(ended) - _MOST_ENDED, 0)]:
            del self._kept[name]
            logger.debug("terminal %s, ended at %.0f, is forgotten", name, ended_s)
        for ended_s, name in ended:
            if name in self._kept and now - ended_s >= _ENDED_FOR_S:
                del self._kept[name]
