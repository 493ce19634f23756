"""Starts sandboxes on this machine, in the mode that `isolation` found."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from localstack.ecs_agent import mounts
from localstack.ecs_agent.cgroups import ControlGroups, Group
from localstack.ecs_agent.command import Descriptors, Users, joined, users_of
from localstack.ecs_agent.dial import DialService
from localstack.ecs_agent.egress import SHUT, Egress, EgressProxy, receive_listener
from localstack.ecs_agent.errors import SandboxStartError
from localstack.ecs_agent.isolation import UNMADE, Isolation, Mode
from localstack.ecs_agent.limits import Limits
from localstack.ecs_agent.room import Room
from localstack.ecs_agent.runtime import Runtime
from localstack.ecs_agent.sandbox import FirstProcess, Sandbox, SandboxEndError
from localstack.ecs_agent.sandbox_folder import Record, SandboxFolder
from localstack.ecs_agent.status_pipe import StatusPipe
from localstack.ecs_agent.user_namespaces import host_id
from localstack.processes import rotate, start_mark
from sandbox_images.sandboxd.seccomp.rules import build, sandbox_rules
from sandbox_images.sandboxd.seccomp.syscalls import this_processor

_logger = logging.getLogger(__name__)
PROBE_S = 20.0
WORKSPACE_VARIABLE = "NODUS_WORKSPACE"
PROXY_UID = 2000
"""Which of a slot's users the egress proxy is, where root starts it: none that anybody in the sandbox is."""


@dataclass(frozen=True)
class Order:
    """A sandbox to start.

    Args:
        sandbox_id: its id, the name of its folder.
        task: ARN of its task, for the record.
        variables: NODUS_… variables of the task for the daemon.
        allowed: host and port that the dial service connects to.
        limits: what it may use.
        egress: what its commands may reach.
    """

    sandbox_id: str
    task: str
    variables: Mapping[str, str]
    allowed: frozenset[tuple[str, int]]
    limits: Limits
    egress: Egress = SHUT


@dataclass(frozen=True)
class Place:
    """What was decided about a sandbox before it starts.

    Args:
        isolation: the mode that was found to work.
        users: of its slot.
        slot: a free one.
        folder: its folder, already made.
    """

    isolation: Isolation
    users: Users
    slot: int
    folder: SandboxFolder


@dataclass(frozen=True)
class Launcher:
    """Starts sandboxes; at most one for each slot.

    `start` must be called from a thread that lives as long as the agent: bubblewrap ends with that thread.

    Args:
        runtime: what is shown at /opt/sandboxd.
        folder: for the sandboxes' folders; it exists.
        groups: control groups that can be had.
        namespaces: descriptors of user namespaces, by slot; empty: there are none.
        trusted: where the operator leads hosts, for the egress proxies (`egress.trusted_words`).
        egress_log: gets a line of JSON for each connection of each sandbox.
    """

    runtime: Runtime
    folder: Path
    groups: ControlGroups
    namespaces: tuple[int, ...] = ()
    trusted: tuple[str, ...] = ()
    egress_log: Path = Path(os.devnull)

    def attempt(self, mode: Mode, bwrap: Path) -> str | None:
        """Run the real command line with `true` in place of the daemon: None, or what went wrong."""
        if mode is Mode.ROOT and not self.namespaces:
            return "there are no user namespaces"
        try:
            return self._attempt(mode, bwrap)
        except OSError as error:
            return f"{UNMADE}: {error}"

    def _attempt(self, mode: Mode, bwrap: Path) -> str | None:
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
        except (OSError, ValueError) as error:
            raise SandboxStartError(f"sandbox {order.sandbox_id!r} cannot be made here: {error}") from error
        with ExitStack() as undo:
            undo.callback(_undo, folder.remove)
            try:
                sandbox = self._start(order, Place(isolation, users, slot, folder), undo)
            except (OSError, RuntimeError, SandboxStartError) as error:
                # RuntimeError: no thread can be started.
                raise SandboxStartError(f"sandbox {order.sandbox_id} did not start: {error}") from error
            undo.pop_all()
        return sandbox

    def _start(self, order: Order, place: Place, undo: ExitStack) -> Sandbox:
        # Before anything runs: whoever finds this record later knows that something may have run.
        folder = place.folder
        folder.write_record(Record(order.task, {}))
        group = self.groups.create(order.sandbox_id, order.limits)
        undo.callback(_undo, group.remove)
        workspace_at = order.variables.get(WORKSPACE_VARIABLE, mounts.WORKSPACE)
        room = Room(place.isolation, place.users, folder, group, order.limits, workspace_at, order.egress)
        life = socket.socketpair()
        undo.callback(life[0].close)
        with life[1]:
            dial = DialService(order.allowed, order.sandbox_id)
            undo.callback(dial.close)
            process, first = self._spawn(
                order, room, place.slot, inside=(life[1].fileno(), dial.theirs.fileno())
            )
        proxy = self._proxy(order, room, place.slot)
        sandbox = Sandbox(order.sandbox_id, place.slot, process, first, life[0], dial, group, folder, proxy)
        undo.callback(_undo, sandbox.close)
        if proxy is not None:
            proxy.start(receive_listener(life[0]))
        dial.start()
        pids = {process.pid, first and first.pid, proxy and proxy.pid}
        marks = {pid: mark for pid in pids if pid is not None and (mark := start_mark(pid)) is not None}
        folder.write_record(Record(order.task, marks))
        return sandbox

    def _proxy(self, order: Order, room: Room, slot: int) -> EgressProxy | None:
        if room.listens_at is None:
            return None
        rotate(self.egress_log)
        uid = None if room.users.host_daemon is None else host_id(slot, PROXY_UID)
        return EgressProxy(
            order.egress,
            code=self.runtime.folder / "app",
            name=order.sandbox_id,
            trusted=self.trusted,
            uid=uid,
            log=self.egress_log,
        )

    def _spawn(
        self, order: Order, room: Room, slot: int, *, inside: tuple[int, int]
    ) -> tuple[subprocess.Popen[bytes], FirstProcess | None]:
        """Execute the command line; `inside` are the sandbox's ends of life line and dial service."""
        status = StatusPipe() if room.mode.isolated else None
        try:
            process = self._execute(order, room, slot, status, inside)
        except OSError:
            if status is not None:
                status.close()
            raise
        return process, None if status is None else _first_process(process, status, room)

    def _execute(
        self, order: Order, room: Room, slot: int, status: StatusPipe | None, inside: tuple[int, int]
    ) -> subprocess.Popen[bytes]:
        with _filter(room.mode) as program, room.folder.log.open("ab") as log:
            descriptors = Descriptors(
                seccomp=program,
                status=None if status is None else status.writer,
                life=inside[0],
                dial=inside[1],
                user_namespace=self._namespace(room.mode, slot),
            )
            return subprocess.Popen(
                joined(room.group.joining_files, room.command(self.runtime, descriptors)),
                pass_fds=descriptors.all(),
                env=room.environment(order.variables, descriptors.dial),
                cwd="/" if room.mode.isolated else room.folder.workspace,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _namespace(self, mode: Mode, slot: int) -> int | None:
        return self.namespaces[slot] if mode is Mode.ROOT else None


def _first_process(process: subprocess.Popen[bytes], status: StatusPipe, room: Room) -> FirstProcess:
    try:
        pid = status.first_pid()
        return FirstProcess(pid, os.pidfd_open(pid), status)
    except (SandboxStartError, OSError) as error:
        status.close()
        process.kill()
        process.wait()
        said = room.folder.log_tail(500)
        raise SandboxStartError(f"{error}: {said}") from error


def _undo(remove: Callable[[], None]) -> None:
    """Take back a part of a start that failed; its error is told, what cannot be taken back is logged."""
    try:
        remove()
    except (OSError, SandboxEndError) as error:
        _logger.error("a sandbox that did not start left something behind: %s", error)


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
        file.write(build(processor, sandbox_rules(joins_user_namespace=mode is Mode.ROOT)))
        file.seek(0)
        yield file.fileno()
