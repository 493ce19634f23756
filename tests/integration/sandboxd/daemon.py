"""Runs the real daemon as a process of its own, against a control plane for tests."""

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import aiohttp

from tests.unit.sandboxd.link_server import LinkServer

DAEMON = Path(__file__).parents[3] / "sandbox_images/sandboxd/__main__.py"
SITE = Path(aiohttp.__file__).parents[1]


class Daemon:
    """A daemon and the server it is linked to."""

    def __init__(self, server: LinkServer, process: subprocess.Popen[bytes], folder: Path) -> None:
        self.server = server
        self.process = process
        self.workspace = folder / "workspace"
        self._commands = 0

    async def shell(self, text: str, **request: Any) -> dict[str, Any]:
        return await self.server.run(self._next_id(), "exec", {"command": text, **request})

    async def ask(self, kind: str, **request: Any) -> dict[str, Any]:
        return await self.server.run(self._next_id(), kind, request)

    async def start(self, text: str, **request: Any) -> str:
        command_id = self._next_id()
        await self.server.submit(command_id, "exec", {"command": text, **request})
        return command_id

    async def exit_code(self) -> int:
        async with asyncio.timeout(30):
            return await asyncio.to_thread(self.process.wait)

    def log(self) -> str:
        return (self.workspace.parent / "daemon.log").read_text()

    def _next_id(self) -> str:
        self._commands += 1
        return f"c{self._commands}"


def command_line(python: str = sys.executable) -> list[str]:
    return [python, "-I", "-S", str(DAEMON), "--site", str(SITE)]


@contextlib.asynccontextmanager
async def daemon(
    folder: Path,
    *,
    argv: Sequence[str] | None = None,
    pass_fds: Sequence[int] = (),
    loss: float = 0.0,
    await_hello: bool = True,
    **environ: str,
) -> AsyncIterator[Daemon]:
    (folder / "workspace").mkdir(exist_ok=True)
    async with LinkServer(loss) as server:
        env = {
            **server.environ,
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(folder / "workspace"),
            "NODUS_WORKSPACE": str(folder / "workspace"),
            "NODUS_STATE_DIR": str(folder / "state"),
            **environ,
        }
        with (folder / "daemon.log").open("ab") as log:
            process = subprocess.Popen(
                argv or command_line(), env=env, stdin=subprocess.DEVNULL, stderr=log, pass_fds=pass_fds
            )
        try:
            if await_hello:
                await server.until(lambda: server.hello and server.bells)
            yield Daemon(server, process, folder)
        finally:
            if process.poll() is None:
                process.kill()
            await asyncio.to_thread(process.wait)


def with_daemon(folder: Path, story: Callable[[Daemon], Awaitable[Any]], **how: Any) -> Any:
    """Runs a story against a fresh daemon."""

    async def told() -> Any:
        async with daemon(folder, **how) as running:
            return await story(running)

    return asyncio.run(told())


def alive(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


def same_python_of_the_system() -> str | None:
    """An interpreter that every user can execute and that can load our packages; None where there is none."""
    path = "/usr/bin/python3"
    if not os.access(path, os.X_OK):
        return None
    version = subprocess.run(
        [path, "-c", "import sys; print(sys.version_info[:2])"], capture_output=True, text=True, check=False
    )
    return path if version.stdout.strip() == str(sys.version_info[:2]) else None
