"""One sandbox that runs."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
from dataclasses import dataclass

from localstack.ecs_agent.cgroups import Group
from localstack.ecs_agent.dial import DialService
from localstack.ecs_agent.egress import EgressProxy
from localstack.ecs_agent.enter import POLITE_STOP
from localstack.ecs_agent.sandbox_folder import SandboxFolder
from localstack.ecs_agent.status_pipe import StatusPipe
from localstack.processes import signal_quietly

_END_S = 5.0


class SandboxEndError(Exception):
    """A sandbox's first process did not end although it was killed."""


@dataclass(frozen=True)
class FirstProcess:
    """The first process inside, seen from outside.

    Args:
        pid: as the machine counts.
        descriptor: pidfd, so that no later process with the same pid is ever meant.
        status: bubblewrap's report; bubblewrap would die of a closed one.
    """

    pid: int
    descriptor: int
    status: StatusPipe

    def kill(self) -> None:
        """SIGKILL to it, and so by the kernel to everything in its pid namespace."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.descriptor, signal.SIGKILL)

    def wait(self, timeout_s: float) -> bool:
        """Wait until it has ended; False when it has not in that time."""
        poll = select.poll()
        poll.register(self.descriptor, select.POLLIN)
        return bool(poll.poll(timeout_s * 1000))

    def close(self) -> None:
        os.close(self.descriptor)
        self.status.close()


@dataclass(frozen=True, eq=False)
class Sandbox:
    """A running sandbox and everything outside that belongs to it.

    Args:
        sandbox_id: its id.
        slot: which users it has.
        process: bubblewrap, or in mode `none` the daemon.
        first: its first process; None in mode `none`.
        life: our end of the life line.
        dial: its dial service.
        group: its control groups.
        folder: its folder.
        proxy: its egress proxy; None: nothing leaves it.
    """

    sandbox_id: str
    slot: int
    process: subprocess.Popen[bytes]
    first: FirstProcess | None
    life: socket.socket
    dial: DialService
    group: Group
    folder: SandboxFolder
    proxy: EgressProxy | None = None

    @property
    def pid(self) -> int:
        """The daemon's pid, as the machine counts."""
        return self.process.pid if self.first is None else self.first.pid

    def poll(self) -> int | None:
        """The exit code, or None while it runs: negative when bubblewrap itself died of a signal.

        Its egress proxy is looked after on the way.
        """
        if self.proxy is not None:
            self.proxy.look_after()
        return self.process.poll()

    def ask_to_end(self) -> None:
        """SIGTERM to everything in it, through the life line: nothing inside can forge or stop that.

        The daemon sees besides that its dial service is gone.
        """
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it has just ended
            self.life.sendall(POLITE_STOP)
        self.dial.hang_up()

    def kill(self) -> None:
        """End it now. In mode `none` only the daemon's own session can be reached."""
        if self.first is None:
            signal_quietly(os.killpg, self.process.pid, signal.SIGKILL)
        else:
            self.first.kill()

    def close(self) -> None:
        """Make sure that it has ended, and let go of sockets and control groups.

        Bubblewrap may have died alone; then the closed life line ends what is inside, and the kill does where
        the daemon hangs.

        Raises:
            SandboxEndError: it runs on although it was killed.
            OSError: a control group cannot be removed.
        """
        self.life.close()
        self.dial.close()
        if self.proxy is not None:
            self.proxy.close()
        self.kill()
        self.process.wait()
        if self.first is not None:
            if not self.first.wait(_END_S):
                raise SandboxEndError(f"sandbox {self.sandbox_id}: process {self.first.pid} does not end")
            self.first.close()
        self.group.remove()

    def log_tail(self, size: int = 600) -> str:
        """The end of what the daemon wrote, for a reason."""
        return self.folder.log_tail(size)
