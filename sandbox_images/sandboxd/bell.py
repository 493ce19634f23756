"""The bell: a WebSocket that says *pull now*, and carries terminals. Losing it makes things slower, never wrong."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable

import aiohttp

from sandboxd.link_http import Identity
from sandboxd.retry import Backoff, jittered

logger = logging.getLogger(__name__)

PING_EVERY_S = 300.0
"""API Gateway closes a WebSocket that is idle for 10 minutes."""

MAX_LIFE_S = 110 * 60.0
"""API Gateway closes every WebSocket after 2 hours; ours go earlier, at a time of their own."""

_STABLE_S = 10.0
"""A connection that lives shorter is as good as none: the delays go on growing."""

_CONNECT_TIMEOUT_S = 15.0
_MAX_FRAME_BYTES = 128 * 1024
_MOST_SAID = 256
"""Messages that wait for a connection; what they say is said again when it is lost."""


class Bell:
    """Keeps the WebSocket up.

    Args:
        ring: called for every text frame that is no message, on every (re)connection, and when connecting fails: the
            pull that follows finds out whether the sandbox is still wanted.
        hear: called with every message: a frame that begins as a JSON object.
    """

    def __init__(
        self,
        session: aiohttp.ClientSession,
        url: str,
        sandbox_id: str,
        identity: Identity,
        *,
        ring: Callable[[], None],
        hear: Callable[[str], None],
    ) -> None:
        self._session = session
        self._url = url
        self._sandbox_id = sandbox_id
        self._identity = identity
        self._ring = ring
        self._hear = hear
        self._says: asyncio.Queue[str] = asyncio.Queue(_MOST_SAID)

    def say(self, text: str) -> None:
        """Sends a message when the connection is up; what is too much is lost."""
        with contextlib.suppress(asyncio.QueueFull):
            self._says.put_nowait(text)

    async def run(self) -> None:
        """Connects, listens, connects again; ends only when it is cancelled."""
        backoff = Backoff(first_s=0.5)
        while True:
            try:
                async with await self._connect() as socket:
                    connected_s = time.monotonic()
                    await self._listen(socket)
                if time.monotonic() - connected_s >= _STABLE_S:
                    backoff.succeeded()
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                logger.warning("bell: %s: %s, connecting again", type(error).__name__, error)
                self._ring()
            await asyncio.sleep(backoff.failed())

    async def _connect(self) -> aiohttp.ClientWebSocketResponse:
        connecting = self._session.ws_connect(
            self._url,
            params={"sandbox": self._sandbox_id},
            headers=self._identity.headers,
            max_msg_size=_MAX_FRAME_BYTES,
        )
        return await asyncio.wait_for(connecting, _CONNECT_TIMEOUT_S)

    async def _listen(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._ring()  # whatever was rung while nobody listened
        sending = asyncio.create_task(_ping(socket)), asyncio.create_task(self._send(socket))
        try:
            # The end of a connection's planned life is no error.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(jittered(MAX_LIFE_S, spread=0.05)):
                    async for message in socket:
                        if message.type is aiohttp.WSMsgType.TEXT:
                            self._take(message.data)
        finally:
            for task in sending:
                task.cancel()

    def _take(self, text: str) -> None:
        if text.startswith("{"):
            self._hear(text)
        else:
            self._ring()

    async def _send(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        while True:
            text = await self._says.get()
            try:
                await socket.send_str(text)
            except (aiohttp.ClientError, OSError):
                return  # the listener sees the loss as well, and connects again


async def _ping(socket: aiohttp.ClientWebSocketResponse) -> None:
    while True:
        await asyncio.sleep(PING_EVERY_S)
        try:
            await socket.send_str('{"action":"ping"}')
        except (aiohttp.ClientError, OSError):
            return  # the listener sees the loss as well, and connects again
