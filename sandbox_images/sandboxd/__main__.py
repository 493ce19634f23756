"""Starts the daemon.

`python -m sandboxd`, or isolated from every foreign module: `python -I -S …/sandboxd/__main__.py [--site DIR]…`,
where each DIR holds packages (aiohttp) that are not beside `sandboxd`.
"""

import asyncio
import faulthandler
import itertools
import logging
import os
import signal
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sandboxd.settings import Settings

_OVERTIME_S = 30.0
"""After the hard deadline: how long an orderly stop may take before the process ends by force."""


def main() -> int:
    """Protects this process, reads its settings once, and runs; returns the exit code."""
    _find_packages(sys.argv[1:])
    from sandboxd import selfguard  # noqa: PLC0415 - only importable after the line above
    from sandboxd.settings import Settings, SettingsError  # noqa: PLC0415

    _log_to_stderr()
    logger = logging.getLogger("sandboxd")
    try:
        selfguard.hide_self()
        settings = Settings.from_environ(os.environ)
        missing = _protect(settings.dial_fd)
    except (SettingsError, selfguard.GuardError) as error:
        logger.error("%s", error)
        return 2
    finally:
        selfguard.wipe_environ()
    # A dead man's switch that works without the event loop: nothing may cost money for ever.
    faulthandler.dump_traceback_later(settings.hard_deadline_s + _OVERTIME_S, exit=True)

    return _run(settings, missing)


def _run(settings: "Settings", missing: tuple[str, ...]) -> int:
    """Runs until the daemon has to stop; returns the exit code.

    Its imports come late, because aiohttp takes most of the start, and secrets are out of reach before it.
    """
    # aiohttp reads all certificates of the system when it is imported: a fifth of the whole start. The link
    # makes a context of its own where it needs one.
    os.environ["SSL_CERT_FILE"] = os.devnull
    try:
        from sandboxd.daemon import Standing, may_be_signalled_by_commands, run_daemon  # noqa: PLC0415
    finally:
        del os.environ["SSL_CERT_FILE"]
    from sandboxd.journal import JournalError  # noqa: PLC0415

    if may_be_signalled_by_commands(settings):
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # Python's own handler would be one, too
    standing = Standing(adopts_orphans="orphans" not in missing, missing=missing)
    try:
        return asyncio.run(run_daemon(settings, standing))
    except JournalError as error:
        logging.getLogger("sandboxd").error("%s", error)
        return 2


def _protect(dial_fd: int | None) -> tuple[str, ...]:
    """Takes privileges from all that will run; returns words for what could not be had."""
    from sandboxd import selfguard  # noqa: PLC0415

    if dial_fd is not None:
        selfguard.keep_from_commands(dial_fd)
    selfguard.forbid_new_privileges()
    selfguard.raise_descriptor_limit()
    dropped = selfguard.drop_inheritable_privileges()
    missing: list[str] = []
    if os.geteuid() == 0 and not os.environ.get("NODUS_COMMAND_UID"):
        missing.append("own-user")
        if not dropped:  # another user would have none all the same
            missing.append("no-capabilities")
    if not selfguard.become_subreaper():
        missing.append("orphans")
    return tuple(missing)


def _find_packages(arguments: list[str]) -> None:
    if not __package__:  # run by its path: the folder above this one holds the package
        here = os.path.dirname(os.path.abspath(__file__))
        sys.path[:] = [os.path.dirname(here), *(path for path in sys.path if os.path.abspath(path) != here)]
    sites = [value for flag, value in itertools.pairwise(arguments) if flag == "--site"]
    sys.path.extend(sites)


def _log_to_stderr() -> None:
    logging.Formatter.converter = time.gmtime
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)sZ %(levelname)s %(name)s %(message)s"
    )


if __name__ == "__main__":
    sys.exit(main())
