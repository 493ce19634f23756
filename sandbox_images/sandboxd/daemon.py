"""One life of the daemon: puts the parts together, runs them, and stops in order."""

import asyncio
import contextlib
import logging
import os
import secrets
import signal
import ssl
import stat
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import aiohttp

from sandboxd.bell import Bell
from sandboxd.desk import CommandDesk
from sandboxd.desks import open_desks
from sandboxd.dialer import DialedConnector, Dialer
from sandboxd.execcore.host import ProcessHost
from sandboxd.guard import enforcer
from sandboxd.journal import CommandJournal, JournalError
from sandboxd.link import Link
from sandboxd.link_http import Identity, LinkClosedError, LinkHttp
from sandboxd.settings import DEFAULT_STATE_DIR, VERSION, Settings
from sandboxd.usage import Meter
from sandboxd.warm import become

logger = logging.getLogger(__name__)

STOP_GRACE_S = 1.0
"""Between the polite signal and force when the whole sandbox stops, which has 3 s in all (FLD-09)."""

_TELL_WITHIN_S = 1.0

EXIT_CODES = {"unauthorized": 3, "refused": 3, "internal": 70}
"""Exit code by the word for why the daemon stopped; every other word is an orderly end: 0."""

_WITHOUT_LINK = frozenset({"unauthorized", "refused", "released"})
"""Then nobody listens any more. A launcher that is gone leaves the connections it has made: they may do."""


@dataclass(frozen=True)
class Standing:
    """What this process has achieved for its protection before it serves anybody.

    Args:
        adopts_orphans: it is pid 1 or a child subreaper.
        missing: words for what could not be had, told in `hello`.
        guard: what keeps the egress policy, as `hello` says it; None: nothing does.
    """

    adopts_orphans: bool
    missing: tuple[str, ...]
    guard: str | None = None


class _Stop:
    """The first word for why the daemon stops; later ones change nothing."""

    def __init__(self) -> None:
        self.asked: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def ask(self, word: str) -> None:
        """Asks for an orderly stop."""
        if not self.asked.done():
            self.asked.set_result(word)


async def run_daemon(settings: Settings, standing: Standing) -> int:
    """Runs until it has to stop; returns the exit code.

    Raises:
        JournalError: there is no folder for the records.
    """
    stopping = _Stop()
    journal = open_journal(settings)
    host = ProcessHost(settings.user, adopts_orphans=standing.adopts_orphans)
    host.open()
    try:
        _prepare_workspace(settings)
        _listen_for_the_end(settings, stopping.ask)
        with contextlib.closing(await enforcer(host, settings.isolation, policy=settings.egress)) as enforced:
            standing = replace(standing, guard=enforced.by)
            return await _serve(settings, standing, journal, host, stopping)
    finally:
        host.close()
        journal.close()


async def _serve(
    settings: Settings,
    standing: Standing,
    journal: CommandJournal,
    host: ProcessHost,
    stopping: _Stop,
) -> int:
    identity = Identity(boot=secrets.token_hex(16), token=secrets.token_hex(32))
    connector, dialer = _connector(settings, stopping.ask)
    async with aiohttp.ClientSession(
        connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False
    ) as session:
        desks = open_desks(settings, standing.guard, host, journal, session, boot=identity.boot)
        settings = await _known(session, settings, identity, stopping)
        http = LinkHttp(session, settings.link_http, settings.sandbox_id, identity)

        def make_bell(ring: Callable[[], None]) -> Bell:
            return Bell(
                session, settings.link_ws, settings.sandbox_id, identity, ring=ring, hear=desks.terminals.hear
            )

        meter = Meter(settings.workspace)
        link = Link(http, desks.commands, desks.asks, make_bell, on_closed=stopping.ask, usage=meter.due)
        desks.terminals.ring, desks.terminals.say = link.ring, link.say
        running: asyncio.Task[None] | None = None
        if not stopping.asked.done():
            running = asyncio.create_task(link.run(settings.enrol_code, _about(settings, standing)))
            running.add_done_callback(lambda task: _on_link_end(task, stopping.ask))
        word = await stopping.asked
        logger.info("stopping: %s", word)
        if running is not None:
            running.cancel()
        await _stop_in_order(
            desks.commands, host, link, within_s=0.0 if word in _WITHOUT_LINK else _TELL_WITHIN_S
        )
        desks.terminals.close()
    if dialer is not None:
        dialer.close()
    return EXIT_CODES.get(word, 0)


async def _known(
    session: aiohttp.ClientSession, settings: Settings, identity: Identity, stopping: _Stop
) -> Settings:
    """The settings once it is known whose machine this is; as they are where it is to stop before."""
    if not settings.is_warm:
        return settings
    becoming = asyncio.create_task(become(session, settings, identity))
    await asyncio.wait({becoming, stopping.asked}, return_when=asyncio.FIRST_COMPLETED)
    if not becoming.done():
        becoming.cancel()
        return settings
    try:
        return becoming.result()
    except LinkClosedError as error:
        logger.info("%s Nobody wants this machine any more.", error)
        stopping.ask("released")
        return settings


async def _stop_in_order(desk: CommandDesk, host: ProcessHost, link: Link, within_s: float) -> None:
    """Ends all commands, records their ends, and tells them as far as there is time."""
    desk.stop()
    survivors = await host.end_everything(STOP_GRACE_S)
    if survivors:
        logger.error("%d processes could not be ended", len(survivors))
    await desk.settled(within_s=1.0)
    untold = await link.settle(within_s)
    if untold:
        logger.warning("%d outcomes could not be told", untold)


def open_journal(settings: Settings) -> CommandJournal:
    """The journal in the folder that was asked for, else in the first default place that can be used.

    Raises:
        JournalError: none can.
    """
    if settings.state_dir is not None:
        places = [Path(settings.state_dir)]
    else:
        home = settings.command_env.get("HOME", "")
        places = [Path(DEFAULT_STATE_DIR)]
        if home.startswith("/") and settings.user.uid is None:
            places.append(Path(home) / ".sandboxd")
        places.append(Path(f"/tmp/.sandboxd-{os.geteuid()}"))  # noqa: S108 - its owner is checked when it is opened
    faults: list[str] = []
    for place in places:
        journal = CommandJournal(place)
        try:
            journal.open()
        except JournalError as error:
            journal.close()
            faults.append(str(error))
        else:
            return journal
    raise JournalError(" ".join(faults))


def _connector(
    settings: Settings, stop: Callable[[str], None]
) -> tuple[aiohttp.BaseConnector, Dialer | None]:
    tls = settings.link_http.startswith("https:") or settings.link_ws.startswith("wss:")
    context = ssl.create_default_context(cafile=settings.ca_file) if tls else None
    if settings.dial_fd is None:
        return aiohttp.TCPConnector(ssl=context if context is not None else True), None
    dialer = Dialer(settings.dial_fd, lambda: stop("launcher_gone"))
    return DialedConnector(dialer, context), dialer


def _listen_for_the_end(settings: Settings, stop: Callable[[str], None]) -> None:
    loop = asyncio.get_running_loop()
    loop.call_later(settings.hard_deadline_s, stop, "deadline")
    if may_be_signalled_by_commands(settings):
        return
    for signum in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signum, stop, "signal")


def may_be_signalled_by_commands(settings: Settings) -> bool:
    """Whether a handler would let a command end the sandbox.

    The kernel keeps signals from inside away from pid 1 as long as it has no handler for them. Where commands
    are the daemon's own user, that is its only shelter: there it ends with its launcher's socket, at the word
    of the control plane, or at its deadline.
    """
    return os.getpid() == 1 and settings.user.uid is None


def _on_link_end(task: asyncio.Task[None], stop: Callable[[str], None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error("the link failed", exc_info=error)
        stop("internal")


def _about(settings: Settings, standing: Standing) -> dict[str, Any]:
    isolation = {**settings.isolation, "guard": standing.guard}
    missing = isolation.get("missing")
    isolation["missing"] = [*(missing if isinstance(missing, list) else []), *standing.missing]
    return {"version": VERSION, "isolation": isolation, "limits": dict(settings.limits)}


def _prepare_workspace(settings: Settings) -> None:
    """Makes the workspace where the image has none (NOD-157), and gives it to the commands' user where it is root's.

    A volume that a task mounts there belongs to root unless the image says otherwise. A folder with something in it,
    or that is everybody's (`/tmp`), keeps its owner.
    """
    folder = Path(settings.workspace)
    with contextlib.suppress(OSError):  # commands then say that they cannot start or write there
        folder.mkdir(parents=True, exist_ok=True, mode=0o755)
        info = folder.lstat()
        roots = stat.S_ISDIR(info.st_mode) and info.st_uid == 0 and not info.st_mode & stat.S_ISVTX
        if settings.user.uid is not None and roots and not os.listdir(folder):
            gid = -1 if settings.user.gid is None else settings.user.gid
            os.chown(folder, settings.user.uid, gid, follow_symlinks=False)
