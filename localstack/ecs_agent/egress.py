"""The way out of one sandbox: a proxy of its own, outside of the sandbox's network.

The sandbox's first code makes the listening socket inside the sandbox's network and hands it out over the life line,
before anything of the sandbox's runs. Who accepts its connections stands outside, and connects from here.
"""

from __future__ import annotations

import json
import logging
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from localstack.ecs_agent.enter import LISTENER
from localstack.ecs_agent.errors import SandboxStartError
from sandbox_images.egress_proxy.policy import ALLOW_LIST, OPEN, Policy

_logger = logging.getLogger(__name__)

DENY = "Deny"
POLICY_VARIABLE = "NODUS_EGRESS"
ALLOW_VARIABLE = "NODUS_EGRESS_ALLOW"
TRUSTED_VARIABLE = "NODUS_EGRESS_TRUSTED"
"""Of the agent itself: `HOST:PORT=ADDRESS:PORT,…`, where the proxies lead a host whatever address it is."""

_HAND_OUT_S = 10.0
_END_S = 2.0
_RESTART_S = 1.0


@dataclass(frozen=True)
class Egress:
    """What a task may reach: policy, and the entries of an allow list."""

    policy: str = DENY
    allow: tuple[str, ...] = ()

    @classmethod
    def of(cls, variables: Mapping[str, str]) -> Egress:
        """From a task's variables; a task that says nothing may reach nothing.

        Raises:
            ValueError: they are no policy.
        """
        policy = variables.get(POLICY_VARIABLE) or DENY
        allow = tuple(word for word in variables.get(ALLOW_VARIABLE, "").split(",") if word)
        if policy != DENY:
            Policy.of(policy, allow)
        return cls(policy, allow)

    @property
    def lets_out(self) -> bool:
        return self.policy in (ALLOW_LIST, OPEN)


SHUT = Egress()


def trusted_words(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The operator's list, from the environment of the agent.

    Raises:
        ValueError: an entry is not HOST:PORT=ADDRESS:PORT.
    """
    words = tuple(word for word in environment.get(TRUSTED_VARIABLE, "").split(",") if word)
    try:
        Policy.of(OPEN, trusted=words)
    except ValueError as error:
        raise ValueError(f"{TRUSTED_VARIABLE}: {error}") from error
    return words


def receive_listener(life: socket.socket) -> socket.socket:
    """The listening socket that the sandbox's first code hands out. Call it before the daemon can have started.

    Raises:
        SandboxStartError: it does not come.
    """
    life.settimeout(_HAND_OUT_S)
    try:
        said, descriptors, _, _ = socket.recv_fds(life, 1, 1, socket.MSG_CMSG_CLOEXEC)
    except OSError as error:
        raise SandboxStartError(f"no listening socket came out of the sandbox: {error}") from error
    life.settimeout(None)
    if said != LISTENER or len(descriptors) != 1:
        raise SandboxStartError("no listening socket came out of the sandbox: it ended before")
    return socket.socket(fileno=descriptors[0])


class EgressProxy:
    """A proxy as a process of its own; one that has died is started again with the same socket."""

    def __init__(
        self, egress: Egress, *, code: Path, name: str, trusted: Sequence[str], uid: int | None, log: Path
    ) -> None:
        """Take what it needs; nothing runs before `start`.

        Args:
            egress: what it lets out.
            code: folder that holds `egress_proxy`.
            name: the sandbox's id, for the log.
            trusted: the operator's list.
            uid: the host's number of the user that it becomes; None: it stays the agent's.
            log: file for its lines.
        """
        self._order = {
            "policy": egress.policy,
            "allow": egress.allow,
            "trusted": list(trusted),
            "about": {"sandbox": name},
            "uid": uid,
        }
        self._program = code / "egress_proxy" / "__main__.py"
        self._name, self._log = name, log
        self._listener: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._again_at = 0.0

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def start(self, listener: socket.socket) -> None:
        """Serve this socket from inside the sandbox; it is owned from here on. Raises OSError."""
        self._listener = listener
        self._execute(listener)

    def look_after(self) -> None:
        """Start it again when it has died; connections wait in the socket meanwhile."""
        ended = self._process is None or self._process.poll() is not None
        if self._listener is None or not ended or time.monotonic() < self._again_at:
            return
        _logger.error("sandbox %s: its egress proxy has ended and is started again", self._name)
        try:
            self._execute(self._listener)
        except OSError as error:
            _logger.error("sandbox %s: its egress proxy does not start: %s", self._name, error)

    def close(self) -> None:
        """End it, and let go of the socket."""
        if self._process is not None:
            self._process.kill()
            self._let_go()
        if self._listener is not None:
            self._listener.close()

    def _execute(self, listener: socket.socket) -> None:
        self._again_at = time.monotonic() + _RESTART_S
        order = json.dumps({**self._order, "listener": listener.fileno()})
        self._let_go()
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-B", str(self._program), order],
                pass_fds=[listener.fileno()],
                env={},
                cwd="/",
                stdin=subprocess.PIPE,  # its life line: the proxy ends with it, whatever ended the agent
                stdout=log,
                start_new_session=True,
            )

    def _let_go(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
