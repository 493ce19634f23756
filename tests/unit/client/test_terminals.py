"""Terminals of the SDK over a connection of this machine."""

from __future__ import annotations

import asyncio
from typing import Any

import nodus
import pytest
from nodus._terminal_line import TerminalCalls
from nodus._terminals import AsyncTerminal
from websockets.asyncio.server import ServerConnection, serve


@pytest.mark.req("NOD-444")
def test_who_leaves_a_terminal_leaves_nothing_at_work() -> None:
    """What is left on a loop that is closed next is complained of, on the screen of whoever has left."""

    async def story() -> list[str]:
        heard = asyncio.Event()

        async def listens(socket: ServerConnection) -> None:
            async for _ in socket:
                heard.set()

        async with serve(listens, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            before = asyncio.all_tasks()
            terminal = AsyncTerminal(
                opened(f"ws://127.0.0.1:{port}"), TerminalCalls(unasked, unasked, unasked)
            )
            await heard.wait()
            await asyncio.sleep(0)
            await terminal.detach()
            ours = asyncio.all_tasks() - before
            return [name for task in ours if "_terminals" in (name := repr(task)) or "Event.wait" in name]

    assert asyncio.run(story()) == []


def opened(url: str) -> nodus.Record:
    """A terminal as the server shows it to who has opened it."""
    spec = {"columns": 80, "rows": 24}
    status = {"state": "Running", "connect": {"url": url, "expiresAt": "2030-01-01T00:00:00.000Z"}}
    return nodus.Record({"metadata": {"name": "t-1"}, "spec": spec, "status": status})


async def unasked() -> Any:
    raise AssertionError("nothing is asked of the server")
