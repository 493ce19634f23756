"""Runs real commands in tests, and looks for processes that they left behind."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
from sandboxd.archive.desk import ArchiveDesk
from sandboxd.desk import CommandDesk
from sandboxd.execcore.host import ProcessHost
from sandboxd.execcore.outputlog import OutputShelf
from sandboxd.execcore.spec import CommandUser, ExecSpec, Outcome
from sandboxd.files import FileDesk
from sandboxd.journal import CommandJournal
from sandboxd.requests import Command
from sandboxd.terminals.desk import TerminalDesk
from sandboxd.transfer import Transfer

from tests.unit.sandboxd.link_server import digest_of

ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/", "LANG": "C.UTF-8"}


def shell(command: str, folder: Path, **more: Any) -> ExecSpec:
    return ExecSpec(argv=("/bin/bash", "-c", command), cwd=str(folder), env=ENV, **more)


@contextlib.asynccontextmanager
async def process_host() -> AsyncIterator[ProcessHost]:
    host = ProcessHost(CommandUser(), adopts_orphans=False)
    host.open()
    try:
        yield host
    finally:
        host.close()


def run_all(*specs: ExecSpec) -> list[Outcome]:
    async def all_of_them() -> list[Outcome]:
        async with process_host() as host:
            return list(await asyncio.gather(*(host.run(host.start(spec)) for spec in specs)))

    return asyncio.run(all_of_them())


def run(spec: ExecSpec) -> Outcome:
    return run_all(spec)[0]


@contextlib.asynccontextmanager
async def command_desk(state: Path, workspace: Path, **more: Any) -> AsyncIterator[CommandDesk]:
    journal = CommandJournal(state)
    journal.open()
    async with process_host() as host, aiohttp.ClientSession() as session:
        terminals = more.pop("terminals", TerminalDesk)(host)
        desk = CommandDesk(
            host,
            FileDesk(host),
            ArchiveDesk(host, Transfer(session), state),
            terminals,
            journal,
            boot="boot-1",
            workspace=str(workspace),
            command_env=ENV,
            **{"outputs": OutputShelf(state / "output"), **more},
        )
        try:
            yield desk
        finally:
            desk.stop()
            await desk.settled(within_s=10)
            terminals.close()
            journal.close()


def on_desk(tmp_path: Path, story: Callable[[CommandDesk], Awaitable[Any]], **more: Any) -> Any:
    """Runs a story against a fresh desk on the folders of this test."""
    workspace = tmp_path / "workspace"
    workspace.mkdir(exist_ok=True)

    async def told() -> Any:
        async with command_desk(tmp_path / "state", workspace, **more) as desk:
            return await story(desk)

    return asyncio.run(told())


def command(command_id: str, kind: str, request: dict[str, Any]) -> Command:
    return Command(command_id, digest_of(kind, request), kind, request)


def execute(command_id: str, text: str, **request: Any) -> Command:
    return command(command_id, "exec", {"command": text, **request})


def pids_in(folder: Path) -> list[int]:
    """All living processes whose working folder is this one."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):  # gone meanwhile, or not ours
            if entry.name.isdigit() and os.readlink(entry / "cwd") == str(folder):
                found.append(int(entry.name))
    return found


def living_in(folder: Path) -> list[str]:
    """Their command lines."""
    found = []
    for pid in pids_in(folder):
        with contextlib.suppress(OSError):
            found.append(Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode())
    return found


async def until(condition: Callable[[], Any], within_s: float = 20.0) -> None:
    """Waits for a state; fails when it does not come."""
    async with asyncio.timeout(within_s):
        while not condition():
            await asyncio.sleep(0.01)
