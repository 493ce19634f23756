"""The desks of one life of the daemon, which share its files, its outputs and its terminals."""

import os
from dataclasses import dataclass

import aiohttp
from egress_proxy.variables import PROXY_VARIABLES

from sandboxd.archive.desk import ArchiveDesk
from sandboxd.asks import AskDesk
from sandboxd.contents import Contents
from sandboxd.desk import CommandDesk
from sandboxd.execcore.host import ProcessHost
from sandboxd.execcore.outputlog import OutputShelf
from sandboxd.fileasks import FileAsks
from sandboxd.files import FileDesk
from sandboxd.journal import CommandJournal
from sandboxd.outputasks import OutputAsks
from sandboxd.previewasks import MOST_AT_ONCE, PreviewAsks
from sandboxd.settings import Settings
from sandboxd.terminals.desk import TerminalDesk
from sandboxd.transfer import Transfer

ASK_TRIES, ASK_TRY_S = 3, 600.0
"""Of the transfer of a content for which somebody waits: how often it is tried, and how long each time."""


@dataclass(frozen=True)
class Desks:
    """Where commands and asks are taken, and the terminals that commands open."""

    commands: CommandDesk
    asks: AskDesk
    terminals: TerminalDesk


def open_desks(
    settings: Settings,
    guard: str | None,
    host: ProcessHost,
    journal: CommandJournal,
    session: aiohttp.ClientSession,
    *,
    boot: str,
) -> Desks:
    """The desks over one host and one journal.

    Args:
        guard: what keeps the egress policy; None: nothing does.
        session: of transfers; it must stay open as long as the desks are used.
        boot: id of this daemon's life.
    """
    files, terminals = FileDesk(host), TerminalDesk(host)
    outputs = OutputShelf(journal.folder / "output")
    commands = CommandDesk(
        host,
        files,
        ArchiveDesk(host, Transfer(session), journal.folder),
        terminals,
        journal,
        boot=boot,
        workspace=settings.workspace,
        workspace_called=settings.workspace_called,
        command_env=_command_env(settings, guard),
        outputs=outputs,
    )
    transfer = Transfer(session, ASK_TRIES, ASK_TRY_S)
    previews = PreviewAsks(host, Contents(transfer, journal.folder, MOST_AT_ONCE))
    asks = AskDesk(
        {
            **FileAsks(files, Contents(transfer, journal.folder)).handlers,
            **OutputAsks(outputs).handlers,
            **previews.handlers,
        },
        workspace=settings.workspace,
        workspace_called=settings.workspace_called,
    )
    return Desks(commands, asks, terminals)


def _command_env(settings: Settings, guard: str | None) -> dict[str, str]:
    """Base environment; HOME becomes the commands' own where the daemon's belongs to somebody else.

    Where something keeps commands to a policy that lets anything out, they are told of the proxy (NOD-459).
    """
    env = dict(settings.command_env)
    if guard is not None and settings.egress is not None:
        env |= PROXY_VARIABLES
    owner = os.geteuid() if settings.user.uid is None else settings.user.uid
    try:
        mine = os.stat(env["HOME"]).st_uid == owner
    except (KeyError, OSError):
        mine = False
    if "HOME" not in env or (settings.user.uid is not None and not mine):
        env["HOME"] = settings.workspace
    return env
