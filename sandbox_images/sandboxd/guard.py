"""The egress guard: keeps commands from every network where the launcher put no network namespace around them.

It gives them sockets of their own loopback; under a policy that lets something out, the proxy is there.

It is believed only after it was tried: a probe, started as commands are, must find every way out closed
(docs/decisions/0008).
"""

import json
import logging
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from egress_proxy.policy import Policy
from egress_proxy.variables import PORT

from sandboxd.execcore.host import ProcessHost
from sandboxd.execcore.spec import ExecSpec, Outcome, SpawnError
from sandboxd.seccomp.install import install, install_asking
from sandboxd.seccomp.rules import build, command_rules
from sandboxd.seccomp.streams import StreamGiver, loopback_stream
from sandboxd.seccomp.syscalls import this_processor
from sandboxd.wayout import WayOut

logger = logging.getLogger(__name__)

_START_TO_END_S = 10.0
_ENV = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
_OWN_FOLDER = Path(__file__).parent


@dataclass
class Enforced:
    """What keeps the sandbox's egress policy: `by` the launcher's means or the guard (`seccomp`), None: nothing does.

    `means` are what the guard gives commands: sockets of loopback, and the proxy there.
    """

    by: str | None
    means: list[StreamGiver | WayOut] = field(default_factory=list[StreamGiver | WayOut])

    def close(self) -> None:
        """Gives nothing any more; the filter stays on whatever runs."""
        while self.means:
            self.means.pop().close()


async def enforcer(
    host: ProcessHost,
    isolation: Mapping[str, Any],
    interpreter: str = sys.executable,
    policy: Policy | None = None,
    port: int = PORT,
) -> Enforced:
    """What keeps the sandbox's egress policy from here on: the launcher's means, else the guard, else nothing.

    Call it before the first command. A launcher that was told to do without isolation gets no guard.

    Args:
        host: starts the commands.
        isolation: the launcher's word.
        interpreter: Python that the commands' user can execute.
        policy: what may be reached; None: nothing (`Deny`).
        port: where the guard's proxy listens, on loopback.
    """
    if isolation.get("guard") is not None:
        return Enforced(str(isolation["guard"]))
    if isolation.get("optIn") is True:
        return Enforced(None)
    enforced = Enforced("seccomp")
    flaws = await _streams(host, enforced, policy, port, interpreter)
    if flaws and policy is None:
        logger.warning("commands get no sockets of loopback: %s", "; ".join(flaws))
        enforced.close()
        flaws = await _none(host, interpreter)
    if flaws:
        logger.error("the egress guard does not hold: %s", "; ".join(flaws))
        enforced.close()
        return Enforced(None)
    return enforced


async def _streams(
    host: ProcessHost, enforced: Enforced, policy: Policy | None, port: int, interpreter: str
) -> list[str]:
    """Lays the filter on all commands that leaves them loopback, with the proxy there; returns what is wrong."""
    try:
        program = _program(streams=True)
        make = partial(loopback_stream, host.user.uid, host.user.gid)
        enforced.means.append(StreamGiver(host.confine(lambda: install_asking(program)), make))
        if policy is not None:
            enforced.means.append(WayOut(policy, port))
    except OSError as error:
        return [str(error)]
    return await probe(host, interpreter, streams=True, proxy_port=0 if policy is None else port)


async def _none(host: ProcessHost, interpreter: str) -> list[str]:
    """Lays the filter on all commands that leaves them unix sockets alone: of several, the strictest word counts."""
    try:
        program = _program(streams=False)
        host.confine(lambda: install(program))
    except OSError as error:
        return [str(error)]
    return await probe(host, interpreter)


def _program(*, streams: bool) -> bytes:
    processor = this_processor()
    if processor is None:
        raise OSError("there is no filter for this processor")
    return build(processor, command_rules(streams=streams))


async def probe(
    host: ProcessHost, interpreter: str = sys.executable, *, streams: bool = False, proxy_port: int = 0
) -> list[str]:
    """Tries, as a command, every way out that is known; returns what is wrong: nothing where the guard holds.

    A probe that cannot be started, or ends without an answer, is wrong as well. `streams`: commands are given sockets,
    which must reach their loopback and nothing beyond; `proxy_port`: this port of it among others, 0: there is no proxy.
    """
    source = _OWN_FOLDER.joinpath("guardprobe.py").read_text(encoding="utf-8")
    closed = (str(_OWN_FOLDER), sys.prefix, str(Path(interpreter).resolve().parent))
    spec = ExecSpec(
        argv=(interpreter, "-I", "-S", "-c", source, json.dumps([streams, proxy_port]), *closed),
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
