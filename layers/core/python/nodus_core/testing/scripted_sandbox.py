"""Sandboxes of scripted behaviour behind the task port: each is a daemon that obeys a Python function.

Effects are counted outside the system under test, in `effects`: one entry for each time a command really ran.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nodus_core.journal.ports import FoundTask, TaskReport, TaskRequest
from nodus_core.journal.sandboxes import Greeting
from nodus_core.kernel.errors import Refusal
from nodus_core.kernel.ids import digest
from nodus_core.kernel.sandboxes import Command
from nodus_core.sandboxes.folders import RESTORE, SAVE
from nodus_core.sandboxes.link import Link
from nodus_core.sandboxes.warm_machines import WarmMachines
from nodus_core.testing.memory_archives import MemoryArchives

Behaviour = Callable[[str, dict[str, Any]], dict[str, Any]]
"""kind and request of a command in, the result's fields out; `RUNNING` for one that runs until it is cancelled."""

Answers = Callable[[str, dict[str, Any]], dict[str, Any] | None]
"""kind and request of an ask in, the answer out; None: the daemon says nothing."""

RUNNING: dict[str, Any] = {"state": "running"}


@dataclass
class Daemon:
    """One started task; without a `sandbox` it is somebody else's, a `deaf` one never asks the link, one of the pool
    was started as `warm`. `folder` is what stands in its saved folder: a line for each command that ran."""

    sandbox: str
    code: str
    token: str
    boot: str
    known: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    secrets: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    alive: bool = True
    up: bool = False
    deaf: bool = False
    warm: str | None = None
    folder: bytes = b""


class ScriptedSandboxes:
    """`SandboxTasks`, `TaskFleet` and `Bell` in one: a task's daemon looks for work whenever `turn` is called."""

    def __init__(self, behaviour: Behaviour) -> None:
        self._behaviour = behaviour
        self.archives = MemoryArchives()
        self.daemons: dict[str, Daemon] = {}
        self.images: dict[str, str | None] = {}
        self.gpus: dict[str, int] = {}
        self.effects: list[tuple[str, str]] = []
        self.asked: list[tuple[str, str, dict[str, Any]]] = []
        self.answers: Answers = lambda kind, request: failed("invalid")
        self.output = _output
        self.rings: list[str] = []
        self.tags: dict[str, dict[str, str]] = {}
        self.link: Link | None = None
        self.isolated = True
        self.guard = "network"

    # --- SandboxTasks ---

    def run(self, request: TaskRequest) -> str:
        sandbox, variables = request.sandbox, request.variables
        arn = f"task/{sandbox}"
        self.images[sandbox] = request.image
        self.gpus[sandbox] = request.gpus
        if arn not in self.daemons:
            token, boot = f"token-{sandbox}", f"boot-{sandbox}"
            warm = sandbox if variables.get("NODUS_WARM") else None
            self.daemons[arn] = Daemon(sandbox, variables["NODUS_ENROL_CODE"], token, boot, warm=warm)
            self.tags[arn] = dict(request.tags)
        return arn

    def find(self, sandbox: str) -> str | None:
        arn = f"task/{sandbox}"
        return arn if arn in self.daemons else None

    def stop(self, task: str, reason: str) -> None:
        if task in self.daemons:
            self.daemons[task].alive = False

    def state(self, task: str) -> TaskReport:
        daemon = self.daemons.get(task)
        if daemon is None:
            return TaskReport("missing")
        return TaskReport("running") if daemon.alive else TaskReport("stopped", "killed by the test")

    def tag(self, task: str, tags: Mapping[str, str]) -> None:
        self.tags[task] |= tags

    # --- TaskFleet ---

    def pages(self) -> Iterator[Sequence[str]]:
        """Two at a time, so that a look has several pages."""
        running = [arn for arn, daemon in self.daemons.items() if daemon.alive]
        for start in range(0, max(len(running), 1), 2):
            yield running[start : start + 2]

    def whose(self, tasks: Sequence[str]) -> list[FoundTask]:
        return [
            FoundTask(arn, self.daemons[arn].warm or self.daemons[arn].sandbox or None, "scripted")
            for arn in tasks
            if arn in self.daemons and self.daemons[arn].alive
        ]

    def states(self, tasks: Sequence[str]) -> dict[str, TaskReport]:
        return {task: self.state(task) for task in tasks}

    # --- Bell ---

    def ring(self, connection: str) -> bool:
        self.rings.append(connection)
        return False

    # --- the daemons' own time ---

    def turn(self) -> None:
        """Every daemon that lives says hello once, pulls, runs what it got, and reports."""
        for daemon in list(self.daemons.values()):
            if daemon.alive and not daemon.deaf:
                try:
                    if self._is_somebodys(daemon):
                        self._turn(daemon)
                except Refusal:
                    daemon.alive = False

    def _turn(self, daemon: Daemon) -> None:
        if self.link is None:
            raise RuntimeError("connect the sandboxes to a link first")
        if not daemon.up:
            greeting = Greeting(daemon.boot, digest(daemon.token), isolated=self.isolated, guard=self.guard)
            daemon.secrets = dict(self.link.hello(daemon.sandbox, greeting, daemon.code))
            daemon.up = True
        sandbox = self.link.authorize(daemon.sandbox, daemon.token)
        pulled = self.link.pull(sandbox, daemon.boot)
        if pulled.stop:
            daemon.alive = False
            return
        for ask in pulled.asks:
            question = json.loads(ask.request)
            self.asked.append((daemon.sandbox, ask.kind, question))
            answer = (
                self.output(daemon, question) if ask.kind == "output" else self.answers(ask.kind, question)
            )
            if daemon.alive and answer is not None:
                self.link.answered(sandbox, ask.id, json.dumps(answer))
        for command, request in pulled.commands:
            if command.id not in daemon.known:
                daemon.known[command.id] = self._run(daemon, command, json.loads(request))
            if daemon.known[command.id] is RUNNING and command.id in pulled.cancel:
                daemon.known[command.id] = {**exited(code=143), "reason": "killed"}
            result = daemon.known[command.id]
            if daemon.alive and result is not RUNNING:
                self.link.done(sandbox, daemon.boot, command.id, json.dumps(result))

    def _is_somebodys(self, daemon: Daemon) -> bool:
        """Whether it is no machine of the pool, or has become somebody's; its own code is `own-` and its first one."""
        if daemon.warm is None or daemon.warm != daemon.sandbox:
            return True
        if self.link is None:
            raise RuntimeError("connect the sandboxes to a link first")
        own, link = f"own-{daemon.code}", WarmMachines(self.link.journal)
        sandbox = link.whose(daemon.warm, digest(daemon.token), daemon.code, digest(own))
        if sandbox is None:
            return False
        daemon.sandbox, daemon.code = sandbox, own
        return True

    def _run(self, daemon: Daemon, command: Command, request: dict[str, Any]) -> dict[str, Any]:
        """A command that has not run yet; folders are saved and restored unless the behaviour has a word on it."""
        said = self._behaviour(command.kind, request)
        if command.kind not in (SAVE, RESTORE):
            self.effects.append((daemon.sandbox, command.id))
            daemon.folder += f"{command.id}\n".encode()
            return said
        if said.get("state") != "exited" or "payloads.invalid" in str(request.get("get")):
            return said  # a source is a payload of its run: there is nothing to compare
        if command.kind == SAVE:
            self.archives.put(request["put"], daemon.folder)
            return saved(daemon.folder)
        content = self.archives.get(request["get"])
        if content is None or saved(content)["sha256"] != request["sha256"]:
            return {"state": "failed", "reason": "damaged", "message": "not what was saved"}
        daemon.folder = content
        return {"state": "exited", "entries": 1, "bytes": len(content)}


def saved(content: bytes) -> dict[str, Any]:
    """What a daemon says of a folder that it has saved."""
    figures = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    return {"state": "exited", "entries": content.count(b"\n"), "frozen": True, **figures}


def _output(daemon: Daemon, question: dict[str, Any]) -> dict[str, Any]:
    """The output of a command, as a daemon tells it."""
    result = daemon.known.get(question["command"])
    if result is None:
        return failed("not_found")
    text = str(result.get("output", ""))[question["after"] : question["after"] + 50_000]
    behind = question["after"] + len(text)
    ended = result is not RUNNING and behind >= len(str(result.get("output", "")))
    pieces = [{"stream": "stdout", "text": text}] if text else []
    return {"state": "exited", "pieces": pieces, "first": 0, "next": behind, "ended": ended}


def exited(output: str = "", code: int = 0) -> dict[str, Any]:
    """The result of a command that ran to its end."""
    size = len(output.encode())
    return {"state": "exited", "exitCode": code, "output": output, "rawBytes": size, "droppedBytes": 0}


def failed(reason: str, message: str = "no") -> dict[str, Any]:
    """An answer or a result that says that nothing was done."""
    return {"state": "failed", "reason": reason, "message": message}
