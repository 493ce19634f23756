"""The egress guard: keeps commands from every network where the launcher put no network namespace around them.

It is believed only after it was tried: a probe, started as commands are, must find every way out closed
(docs/decisions/0008).
"""

import json
import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sandboxd.execcore.host import ProcessHost
from sandboxd.execcore.spec import ExecSpec, Outcome, SpawnError
from sandboxd.seccomp.install import install
from sandboxd.seccomp.rules import build, command_rules
from sandboxd.seccomp.syscalls import this_processor
from sandboxd.settings import DENY

logger = logging.getLogger(__name__)

_START_TO_END_S = 10.0
_ENV = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
_OWN_FOLDER = Path(__file__).parent


async def enforcer(
    host: ProcessHost, isolation: Mapping[str, Any], interpreter: str = sys.executable, egress: str = DENY
) -> str | None:
    """What keeps the sandbox's egress policy from here on: the launcher's means, else the guard, else None.

    Call it before the first command. A launcher that was told to do without isolation gets no guard.

    Args:
        host: starts the commands.
        isolation: the launcher's word.
        interpreter: Python that the commands' user can execute.
        egress: the policy; the guard keeps to `Deny` and to no other.
    """
    if isolation.get("guard") is not None:
        return str(isolation["guard"])
    if isolation.get("optIn") is True:
        return None
    if egress != DENY:
        logger.error("the egress guard leaves commands no way to a proxy, which %s needs", egress)
        return None
    flaws = _put_on(host) or await probe(host, interpreter)
    if flaws:
        logger.error("the egress guard does not hold: %s", "; ".join(flaws))
        return None
    return "seccomp"


def _put_on(host: ProcessHost) -> list[str]:
    """Lays the filter on all commands; returns why it could not."""
    processor = this_processor()
    if processor is None:
        return ["there is no filter for this processor"]
    program = build(processor, command_rules())
    try:
        host.confine(lambda: install(program))
    except OSError as error:
        return [str(error)]
    return []


async def probe(host: ProcessHost, interpreter: str = sys.executable) -> list[str]:
    """Tries, as a command, every way out that is known; returns what is wrong: nothing where the guard holds.

    A probe that cannot be started, or ends without an answer, is wrong as well.
    """
    source = _OWN_FOLDER.joinpath("guardprobe.py").read_text(encoding="utf-8")
    closed = (str(_OWN_FOLDER), sys.prefix, str(Path(interpreter).resolve().parent))
    spec = ExecSpec(
        argv=(interpreter, "-I", "-S", "-c", source, *closed),
        cwd="/",
        env=_ENV,
        start_to_end_s=_START_TO_END_S,
        grace_s=0.0,
    )
    try:
        outcome = await host.run(host.start(spec))
    except SpawnError as error:
        return [f"the probe cannot be started: {error}"]
    return _found(outcome)


def _found(outcome: Outcome) -> list[str]:
    said = outcome.captured.head + outcome.captured.tail
    try:
        found = json.loads(said) if outcome.exit_code == 0 else None
    except ValueError:
        found = None
    if not isinstance(found, dict) or found.keys() != {"open", "broken"}:
        return [f"the probe ended with {outcome.exit_code or outcome.signal}: {said[-1000:]!r}"]
    return [*(f"open: {way}" for way in found["open"]), *(f"broken: {need}" for need in found["broken"])]
