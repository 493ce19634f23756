"""Takes commands and sees to it that each id runs at most once and gets one outcome."""

import asyncio
import contextlib
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace

from sandboxd.archive.desk import ArchiveDesk
from sandboxd.execcore.execution import Execution
from sandboxd.execcore.host import ProcessHost
from sandboxd.execcore.outputlog import OutputShelf
from sandboxd.execcore.spec import ExecSpec, Outcome, SpawnError, StopReason
from sandboxd.files import FileDesk
from sandboxd.journal import AlreadyBegunError, CommandJournal, EntryState, JournalError, key_of
from sandboxd.redaction import NOTHING, Redactor
from sandboxd.requests import (
    Command,
    ExecRequest,
    InvalidRequestError,
    RestoreRequest,
    SaveRequest,
    TerminalRequest,
)
from sandboxd.results import Result, exec_result, failed_result, logged_result, lost_result, terminal_result
from sandboxd.terminals.desk import TerminalDesk

MAX_RUNNING = 64
MAX_FILE_REQUESTS = 16
"""File requests have places of their own: long commands must not keep an agent from reading a file."""

logger = logging.getLogger(__name__)


@dataclass
class _Taken:
    """A command of this daemon's life that is not settled with the control plane yet."""

    digest: str
    task: "asyncio.Task[Result]"
    execution: Execution | None = None
    cancelled: bool = False


class CommandDesk:
    """The only way to run something.

    Args:
        boot: id of this daemon's life, written into each start record.
        shell: program that takes `-c COMMAND`.
        workspace_called: how requests name the workspace where it is not at that path; None: it is.
        command_env: base environment; a request adds to it.
        outputs: the logs of commands that have one.
    """

    def __init__(
        self,
        host: ProcessHost,
        files: FileDesk,
        archives: ArchiveDesk,
        terminals: TerminalDesk,
        journal: CommandJournal,
        *,
        boot: str,
        workspace: str,
        workspace_called: str | None = None,
        command_env: Mapping[str, str],
        outputs: OutputShelf,
        shell: str | None = None,
        max_running: int = MAX_RUNNING,
    ) -> None:
        self._host = host
        self._files = files
        self._archives = archives
        self._terminals = terminals
        self._journal = journal
        self._boot = boot
        self._workspace = workspace
        self._workspace_called = workspace_called
        self._env = command_env
        self._outputs = outputs
        self._shell = shell or find_shell()
        self._slots = asyncio.Semaphore(max_running)
        self._file_slots = asyncio.Semaphore(MAX_FILE_REQUESTS)
        self._taken: dict[str, _Taken] = {}
        self._stopping = False
        self._secrets: Mapping[str, str] = {}
        self._redactor = NOTHING

    def take_secrets(self, values: Mapping[str, str]) -> None:
        """Sets variables of all commands from now on, whose values are taken out of every outcome (NOD-455)."""
        self._secrets, self._redactor = values, Redactor(values.values())

    def submit(self, command: Command, *, cancelled: bool = False) -> "asyncio.Task[Result]":
        """Takes a command. The same id gives the same outcome, also across lives of the daemon.

        Args:
            cancelled: its cancellation is known already; it will not be started.

        Returns:
            A task of the result; it never raises.
        """
        taken = self._taken.get(command.id)
        if taken is not None:
            if taken.digest != command.digest:
                return asyncio.create_task(_settled(_conflict(command)))
            if cancelled:
                self.cancel(command.id)
            return taken.task
        task = asyncio.create_task(self._settle(command))
        self._taken[command.id] = _Taken(command.digest, task, cancelled=cancelled)
        return task

    def cancel(self, command_id: str, reason: StopReason = StopReason.KILLED) -> None:
        """Ends a running command and its tree, or keeps a waiting one from its start; else nothing."""
        taken = self._taken.get(command_id)
        if taken is None:
            return
        taken.cancelled = True
        if taken.execution is not None:
            taken.execution.stop(reason)

    def told(self, command_id: str, outcome: "asyncio.Task[Result]") -> None:
        """The control plane has this outcome: it may be forgotten in memory, and evicted from the journal.

        What never came into the journal stays in memory: an answer to a pull that was under way may bring the
        command once more, and it must fail again as it was told.
        """
        taken = self._taken.get(command_id)
        entry = self._journal.find(command_id)
        if entry is None or entry.state is EntryState.BEGUN:
            return
        if taken is not None and taken.task is outcome:
            del self._taken[command_id]
        self._journal.told(command_id)

    @property
    def busy(self) -> bool:
        """Whether a command runs or waits to run."""
        return any(not taken.task.done() for taken in self._taken.values())

    def stop(self) -> None:
        """Ends everything as lost, for nobody asked for its end; what comes later is not started."""
        self._stopping = True
        for command_id in tuple(self._taken):
            self.cancel(command_id, StopReason.SHUTDOWN)

    async def settled(self, within_s: float) -> None:
        """Waits until everything that was taken has an outcome, at most `within_s` seconds."""
        tasks = {taken.task for taken in self._taken.values()}
        if tasks:
            await asyncio.wait(tasks, timeout=within_s)

    async def _settle(self, command: Command) -> Result:
        try:
            known = self._known(command)
            if known is not None:
                return known
            async with self._place_of(command.kind):
                return await self._begin_and_run(command)
        except Exception:
            # Whatever went wrong here, it is our fault and not known to be without effect.
            logger.exception("command %s: the daemon failed", command.id)
            return lost_result("internal", "The daemon failed. Look before you repeat the command.")

    def _place_of(self, kind: str) -> contextlib.AbstractAsyncContextManager[None]:
        """Where a command waits for its turn. A terminal never waits: there is room for it, or it is refused."""
        if kind == "terminal":
            return contextlib.nullcontext()
        return self._slots if kind == "exec" else self._file_slots

    def _known(self, command: Command) -> Result | None:
        entry = self._journal.find(command.id)
        if entry is None:
            return None
        if entry.digest not in ("", command.digest):  # empty: its records cannot be read
            return _conflict(command)
        if entry.state is EntryState.EVICTED:
            return lost_result(
                "evicted", "The command was run before; its outcome was told then and is no longer kept."
            )
        result = self._journal.outcome(command.id)
        if result is not None:
            return result
        return lost_result(
            "internal",
            "The command was begun before, and the record of its outcome cannot be read. Look before you repeat it.",
        )

    async def _begin_and_run(self, command: Command) -> Result:
        try:
            request = command.parse(self._workspace, self._workspace_called)
            self._journal.begin(command.id, command.digest, command.kind, self._boot)
        except InvalidRequestError as error:
            return failed_result("invalid", str(error))
        except AlreadyBegunError:
            return lost_result("begun_before", "The command was begun before; its outcome is unknown.")
        except JournalError as error:
            return failed_result("journal", f"{error} The command was not started.")
        taken = self._taken[command.id]
        await self._host.moving()
        if taken.cancelled or self._stopping:
            result = failed_result("killed", "The command was cancelled before it was started.")
        elif isinstance(request, ExecRequest):
            result = await self._execute(command.id, request, taken)
        elif isinstance(request, SaveRequest | RestoreRequest):
            result = await self._archives.run(request)
        elif isinstance(request, TerminalRequest):
            result = await self._open(command.id, request, taken)
        else:
            result = await self._files.run(request, self._redactor)
        self._record(command, result)
        return result

    async def _execute(self, command_id: str, request: ExecRequest, taken: _Taken) -> Result:
        if not request.is_logged:
            outcome = await self._run(self._spec(request), taken)
            return exec_result(outcome) if isinstance(outcome, Outcome) else outcome
        name = key_of(command_id)
        spec = replace(self._spec(request), head_bytes=0, tail_bytes=0, log=self._outputs.begin(name))
        try:
            outcome = await self._run(spec, taken)
            return logged_result(outcome) if isinstance(outcome, Outcome) else outcome
        finally:
            self._outputs.end(name)

    def _spec(self, request: ExecRequest) -> ExecSpec:
        return ExecSpec(
            argv=(self._shell, "-c", request.command),
            cwd=request.cwd,
            env={**self._env, **request.env, **self._secrets},
            start_to_end_s=request.start_to_end_s,
            grace_s=request.grace_s,
            spares=True,
            redactor=self._redactor,
        )

    async def _run(self, spec: ExecSpec, taken: _Taken) -> Outcome | Result:
        """The outcome of a command, or the result of one that could not be started."""
        try:
            taken.execution = self._host.start(spec)
        except SpawnError as error:
            return failed_result(error.reason, str(error))
        return await self._host.run(taken.execution)

    async def _open(self, name: str, request: TerminalRequest, taken: _Taken) -> Result:
        try:
            taken.execution = self._terminals.open(name, request, self._shell, {**self._env, **request.env})
        except SpawnError as error:
            return failed_result(error.reason, str(error))
        outcome = await self._host.run(taken.execution)
        self._terminals.ended(name, outcome)
        return terminal_result(outcome)

    def _record(self, command: Command, result: Result) -> None:
        try:
            self._journal.end(command.id, result)
        except JournalError:
            # The result is still told. Only a crash before that would turn it into `lost`.
            logger.exception("command %s: its outcome is not on disk", command.id)


def find_shell() -> str:
    """`bash` where there is one, else `sh`."""
    for path in ("/bin/bash", "/usr/bin/bash"):
        if os.access(path, os.X_OK):
            return path
    return "/bin/sh"


async def _settled(result: Result) -> Result:
    return result


def _conflict(command: Command) -> Result:
    return failed_result(
        "conflict",
        f"Command {command.id!r} was given before with another request. Nothing was run; use another id.",
    )
