"""Real commands behind the egress guard, for its tests."""

import asyncio
import fcntl
import os
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sandboxd import selfguard
from sandboxd.execcore.host import ProcessHost
from sandboxd.execcore.spec import CommandUser, ExecSpec, Outcome
from sandboxd.seccomp.install import install
from sandboxd.seccomp.rules import Rule, build
from sandboxd.seccomp.syscalls import Processor, this_processor

PYTHON = "/usr/bin/python3"
NOBODY = CommandUser(65534, 65534)
UNSAID: dict[str, Any] = {"isolated": True, "guard": None, "missing": []}

as_root = pytest.mark.skipif(
    os.geteuid() != 0 or not os.access(PYTHON, os.X_OK),
    reason="only root gives commands a user of their own; they need an interpreter that everybody can execute",
)
needs_python = pytest.mark.skipif(not os.access(PYTHON, os.X_OK), reason=f"needs {PYTHON}")


def processor() -> Processor:
    found = this_processor()
    assert found is not None
    return found


def on_host(story: Callable[[ProcessHost], Awaitable[Any]], user: CommandUser = NOBODY) -> Any:
    """Runs a story on a host whose commands get no new privileges, as the daemon's do not."""

    async def told() -> Any:
        host = ProcessHost(user, adopts_orphans=False)
        host.open()
        try:
            host.confine(selfguard.forbid_new_privileges)
            return await story(host)
        finally:
            host.close()

    with alone_on_this_machine():
        return asyncio.run(told())


@contextmanager
def alone_on_this_machine() -> Iterator[None]:
    """Two hosts at once on one machine give their commands the same groups, and each ends the other's."""
    shared = os.open(tempfile.gettempdir(), os.O_RDONLY)
    try:
        fcntl.flock(shared, fcntl.LOCK_EX)
        yield
    finally:
        os.close(shared)


def lay(host: ProcessHost, rules: Iterable[Rule], on: Processor | None = None) -> None:
    program = build(on or processor(), rules)
    host.confine(lambda: install(program))


async def run(host: ProcessHost, *argv: str) -> Outcome:
    spec = ExecSpec(argv=argv, cwd="/", env={"PATH": "/usr/local/bin:/usr/bin:/bin"}, start_to_end_s=30)
    return await host.run(host.start(spec))


def text(outcome: Outcome) -> str:
    return (outcome.captured.head + outcome.captured.tail).decode()
