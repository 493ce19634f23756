"""Starts sandboxes on this machine, in the mode that `isolation` found."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from localstack.ecs_agent import mounts, seccomp
from localstack.ecs_agent.cgroups import ControlGroups, Group
from localstack.ecs_agent.command import Descriptors, joined, users_of
from localstack.ecs_agent.dial import DialService
from localstack.ecs_agent.errors import SandboxStartError
from localstack.ecs_agent.isolation import Isolation, Mode
from localstack.ecs_agent.limits import Limits
from localstack.ecs_agent.room import Room
from localstack.ecs_agent.runtime import Runtime
from localstack.ecs_agent.sandbox import FirstProcess, Sandbox
from localstack.ecs_agent.sandbox_folder import Record, SandboxFolder
from localstack.ecs_agent.status_pipe import StatusPipe
from localstack.ecs_agent.syscalls import this_processor
from localstack.processes import start_mark

PROBE_S = 20.0
WORKSPACE_VARIABLE = "NODUS_WORKSPACE"


@dataclass(frozen=True)
class Order:
    """A sandbox to start.

    Args:
        sandbox_id: its id, the name of its folder.
        task: ARN of its task, for the record.
        variables: NODUS_… variables of the task for the daemon.
        allowed: host and port that the dial service connects to.
        limits: what it may use.
    """

    sandbox_id: str
    task: str
    variables: Mapping[str, str]
    allowed: frozenset[tuple[str, int]]
    limits: Limits


@dataclass(frozen=True)
class Launcher:
    """Starts sandboxes; at most one for each slot.

    `start` must be called from a thread that lives as long as the agent: bubblewrap ends with that thread.

    Args:
        runtime: what is shown at /opt/sandboxd.
        folder: for the sandboxes' folders; it exists.
        groups: control groups that can be had.
        namespaces: descriptors of user namespaces, by slot; empty: there are none.
    """

    runtime: Runtime
    folder: Path
    groups: ControlGroups
    namespaces: tuple[int, ...] = ()

    def attempt(self, mode: Mode, bwrap: Path) -> str | None:
        """Run the real command line with `true` in place of the daemon: None, or what went wrong."""
        if mode is Mode.ROOT and not self.namespaces:
            return "there are no user namespaces"
        users = users_of(mode, 0)
        with tempfile.TemporaryDirectory(dir=self.folder, prefix=".probe-") as parent:
            folder = SandboxFolder(Path(parent), "probe")
            folder.create(users)
            room = Room(Isolation(mode, bwrap), users, folder, Group(), Limits())
            with _filter(mode) as program:
                descriptors = Descriptors(seccomp=program, user_namespace=self._namespace(mode, 0))
                return _say_what_fails(room, room.command(self.runtime, descriptors, probe=True), descriptors)

    def start(self, order: Order, isolation: Isolation, slot: int) -> Sandbox:
        """Start one sandbox.

        Args:
            order: what to start.
            isolation: the mode that was found to work.
            slot: a free one.

        Raises:
            SandboxStartError: it did not start.
        """
        users = users_of(isolation.mode, slot)
        try:
            folder = SandboxFolder(self.folder, order.sandbox_id)
            folder.create(users)
        except (FileExistsError, ValueError) as error:
            raise SandboxStartError(f"sandbox {order.sandbox_id!r} cannot be made here: {error}") from error
        # Before anything runs: whoever finds this record later knows that something may have run.
        folder.write_record(Record(order.task, {}))
        group = self.groups.create(order.sandbox_id, order.limits)
        workspace_at = order.variables.get(WORKSPACE_VARIABLE, mounts.WORKSPACE)
        room = Room(isolation, users, folder, group, order.limits, workspace_at)
        life, dial = socket.socketpair(), DialService(order.allowed, order.sandbox_id)
        try:
            with life[1]:
                process, first = self._spawn(
                    order, room, slot, inside=(life[1].fileno(), dial.theirs.fileno())
                )
        except (OSError, SandboxStartError) as error:
            life[0].close()
            dial.close()
            group.remove()
            folder.remove()
            raise SandboxStartError(f"sandbox {order.sandbox_id} did not start: {error}") from error
        dial.start()
        pids = {process.pid} if first is None else {process.pid, first.pid}
        marks = {pid: mark for pid in pids if (mark := start_mark(pid)) is not None}
        folder.write_record(Record(order.task, marks))
        return Sandbox(order.sandbox_id, slot, process, first, life[0], dial, group, folder)

    def _spawn(
        self, order: Order, room: Room, slot: int, *, inside: tuple[int, int]
    ) -> tuple[subprocess.Popen[bytes], FirstProcess | None]:
        """Execute the command line; `inside` are the sandbox's ends of life line and dial service."""
        status = StatusPipe() if room.mode.isolated else None
        with _filter(room.mode) as program, room.folder.log.open("ab") as log:
            descriptors = Descriptors(
                seccomp=program,
                status=None if status is None else status.writer,
                life=inside[0],
                dial=inside[1],
                user_namespace=self._namespace(room.mode, slot),
            )
            process = subprocess.Popen(
                joined(room.group.joining_files, room.command(self.runtime, descriptors)),
                pass_fds=descriptors.all(),
                env=room.environment(order.variables, descriptors.dial),
                cwd="/" if room.mode.isolated else room.folder.workspace,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        return process, None if status is None else _first_process(process, status, room)

    def _namespace(self, mode: Mode, slot: int) -> int | None:
        return self.namespaces[slot] if mode is Mode.ROOT else None


def _first_process(process: subprocess.Popen[bytes], status: StatusPipe, room: Room) -> FirstProcess:
    try:
        pid = status.first_pid()
        return FirstProcess(pid, os.pidfd_open(pid), status)
    except (SandboxStartError, ProcessLookupError) as error:
        status.close()
        process.kill()
        process.wait()
        said = room.folder.log.read_text(errors="replace").strip()[-500:]
        raise SandboxStartError(f"{error}: {said}") from error


def _say_what_fails(room: Room, command: list[str], descriptors: Descriptors) -> str | None:
    try:
        answer = subprocess.run(
            command,
            pass_fds=descriptors.all(),
            env=room.common_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PROBE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if answer.returncode == 0:
        return None
    words = answer.stderr.decode(errors="replace").strip().splitlines()
    return words[-1] if words else f"it ended with {answer.returncode}"


@contextmanager
def _filter(mode: Mode) -> Iterator[int | None]:
    """A descriptor of the filter, for bubblewrap to read from its start; None for a processor without one."""
    processor = this_processor()
    if processor is None or not mode.isolated:
        yield None
        return
    with tempfile.TemporaryFile() as file:
        file.write(seccomp.build(processor, joins_user_namespace=mode is Mode.ROOT))
        file.seek(0)
        yield file.fileno()
