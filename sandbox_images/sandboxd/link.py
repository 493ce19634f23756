"""Takes commands from the control plane and tells it their outcomes, through any loss of any message.

The journal of the control plane is the truth, the bell only saves time: what the daemon has not told is asked
for again, what it was given twice it runs once.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from typing import Any

from sandboxd.asks import Ask, AskDesk
from sandboxd.bell import Bell
from sandboxd.desk import CommandDesk
from sandboxd.link_http import LinkClosedError, LinkHttp, Pulled
from sandboxd.requests import Command, InvalidRequestError
from sandboxd.results import Result
from sandboxd.retry import jittered
from sandboxd.usage import Usage

logger = logging.getLogger(__name__)

PULL_EVERY_S = 20.0


class Link:
    """One daemon's conversation with the control plane.

    Args:
        make_bell: gets the function to call for *pull now*.
        usage: what the sandbox uses, None as long as it was told just now.
        on_closed: called with a word (`released`, `unauthorized`, `refused`, `stop`) when the daemon has to stop.
    """

    def __init__(
        self,
        http: LinkHttp,
        desk: CommandDesk,
        asks: AskDesk,
        make_bell: Callable[[Callable[[], None]], Bell],
        *,
        on_closed: Callable[[str], None],
        usage: Callable[[], Usage | None] = lambda: None,
        pull_every_s: float = PULL_EVERY_S,
    ) -> None:
        self._http = http
        self._desk = desk
        self._asks = asks
        self._on_closed = on_closed
        self._usage = usage
        self._pull_every_s = pull_every_s
        self._wanted = asyncio.Event()
        self._bell = make_bell(self._wanted.set)
        self._telling: dict[str, set[asyncio.Task[None]]] = {}

    def ring(self) -> None:
        """Asks for a pull now."""
        self._wanted.set()

    def say(self, text: str) -> None:
        """Sends a message over the bell; one that cannot go is lost, and whoever cares sends it again."""
        self._bell.say(text)

    async def run(self, enrol_code: str | None, about: Mapping[str, Any]) -> None:
        """Says hello, then pulls until it is cancelled or the control plane closes the link."""
        bell: asyncio.Task[None] | None = None
        try:
            self._desk.take_secrets(await self._http.hello(enrol_code, about))
            logger.info("hello accepted")
            bell = asyncio.create_task(self._bell.run())
            await self._pull_for_ever()
        except LinkClosedError as error:
            self._close(error)
        finally:
            if bell is not None:
                bell.cancel()

    async def settle(self, within_s: float) -> int:
        """Waits until the outcomes known by now are told; returns how many could not be."""
        telling = {task for tasks in self._telling.values() for task in tasks}
        if not telling:
            return 0
        _, untold = await asyncio.wait(telling, timeout=within_s)
        for task in untold:
            task.cancel()
        return len(untold)

    async def _pull_for_ever(self) -> None:
        while True:
            self._wanted.clear()  # before the pull: a ring during it asks for one more
            pulled = await self._http.pull(tuple(self._telling), self._usage())
            taken = self._take(pulled)
            if pulled.stop:
                self._on_closed("stop")
                return
            if pulled.more and taken:  # without anything new, the next answer would be the same
                continue
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(jittered(self._pull_every_s, spread=0.2)):
                    await self._wanted.wait()

    def _take(self, pulled: Pulled) -> int:
        """Starts what a pull brought; returns how many commands and asks were new."""
        had = len(self._telling)
        cancelled = frozenset(pulled.cancel)
        for wire in pulled.commands:
            try:
                command = Command.from_wire(wire)
            except InvalidRequestError as error:
                logger.error("a command cannot be answered: %s", error)
                continue
            self._tell(command.id, self._desk.submit(command, cancelled=command.id in cancelled))
        for wire in pulled.asks:
            try:
                ask = Ask.from_wire(wire)
            except InvalidRequestError as error:
                logger.error("an ask cannot be answered: %s", error)
                continue
            self._tell(ask.id, self._asks.submit(ask))
        for command_id in pulled.cancel:
            self._desk.cancel(command_id)
        return len(self._telling) - had

    def _tell(self, command_id: str, outcome: asyncio.Task[Result]) -> None:
        """Tells an outcome once it is there; one that is being told already is not told twice at a time."""
        telling = self._telling.setdefault(command_id, set())
        name = f"tell-{id(outcome)}"
        if any(task.get_name() == name for task in telling):
            return
        task = asyncio.create_task(self._tell_outcome(command_id, outcome), name=name)
        telling.add(task)
        task.add_done_callback(lambda ended: self._told(command_id, ended))

    async def _tell_outcome(self, command_id: str, outcome: asyncio.Task[Result]) -> None:
        result = await asyncio.shield(outcome)
        try:
            await self._http.done(command_id, result)
        except LinkClosedError as error:
            self._close(error)
            return
        logger.info("command %s: %s told", command_id, result["state"])
        self._desk.told(command_id, outcome)

    def _told(self, command_id: str, ended: asyncio.Task[None]) -> None:
        telling = self._telling.get(command_id, set())
        telling.discard(ended)
        if not telling:
            self._telling.pop(command_id, None)
        if not ended.cancelled() and (error := ended.exception()) is not None:
            logger.error("command %s: its outcome could not be told", command_id, exc_info=error)

    def _close(self, error: LinkClosedError) -> None:
        logger.warning("%s Stopping.", error)
        self._on_closed({401: "unauthorized", 410: "released"}.get(error.status, "refused"))
