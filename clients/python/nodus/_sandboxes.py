"""Handles of sandboxes of one's own (NODQ-100)."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, Generic, TypedDict, TypeVar, Unpack

from nodus._client import AsyncClient, Client, default_client
from nodus._egress import Egress
from nodus._files import FilesOfOne
from nodus._flow import Blocking, Concurrent, Flow, operation, reading
from nodus._machines import SandboxesFlows
from nodus._money import money
from nodus._record import Record
from nodus._resources import ResourceFlows
from nodus._runs import CLEAN_UP_SECONDS, status_of
from nodus._terminal_line import TerminalCalls
from nodus._variables import Env, SecretFields, variables_spec
from nodus._waiting import waiting
from nodus.errors import OutputGoneError

if TYPE_CHECKING:
    from nodus._terminals import AsyncTerminal, Terminal

TerminalT = TypeVar("TerminalT")

SIZES = {
    "Starter": {"cpu": "1", "memory": "2"},
    "Standard": {"cpu": "2", "memory": "4"},
    "Performance": {"cpu": "4", "memory": "8"},
}
"""Sizes in words (NODQ-62)."""

SAVED_SECONDS = CLEAN_UP_SECONDS + 120
"""Of a stop: a last save of its folder may take two minutes."""


class SandboxSettings(TypedDict, total=False):
    """What a sandbox shall be."""

    image: str | None
    size: str | None
    cpu: str | float | None
    memory: str | float | None
    gpu: int | None
    idle_timeout: str | None
    ttl: str | None
    network: Egress | None
    state_dir: str | None
    max_cost: str | Decimal | int | None
    env: Env | None
    secrets: SecretFields | None


class SandboxFlows(FilesOfOne, Generic[TerminalT]):
    """A handle to one sandbox."""

    @reading
    def status(self) -> Flow[Record]:
        """The sandbox's status now; each access reads it from the server."""
        return status_of((yield from ResourceFlows.get(self._client.sandboxes, self.name)))

    @operation
    def start(self, *, timeout: float = CLEAN_UP_SECONDS) -> Flow[Record]:
        """Ask for the sandbox's machine, and wait until it runs or has failed to; its status then (NOD-411).

        Raises:
            ConflictError: it is being deleted, or has cost its ``maxCostUSD``.
            WaitTimeoutError: asked for, but not there in time.
        """
        yield from SandboxesFlows.start(self._client.sandboxes, self.name)
        return (yield from self._settled(("Running", "Paused"), timeout))

    @operation
    def stop(self, *, timeout: float = SAVED_SECONDS) -> Flow[Record]:
        """End the sandbox's machine, with its files and processes, and wait until it is gone; its status then.

        A folder that is saved is saved before (``status.lastSave``).

        Raises:
            ConflictError: it is being deleted.
            WaitTimeoutError: asked for, but not done in time; it will be.
        """
        yield from SandboxesFlows.stop(self._client.sandboxes, self.name)
        return (yield from self._settled(("Paused",), timeout))

    @operation
    def run(
        self, command: str, *, working_dir: str | None = None, timeout: str | None = None
    ) -> Flow[Record]:
        """Run a shell command, wait for its end, and return what came of it: ``state``, ``exit_code``, ``output``.

        Args:
            command: the shell command line.
            working_dir: where to run it; ``None``: the sandbox's working folder.
            timeout: it is ended after so much time, such as ``"10m"``; ``None``: after a minute.

        Raises:
            SandboxNotRunningError: the sandbox's machine does not run.
        """
        sandboxes, name = self._client.sandboxes, self.name
        placed = yield from SandboxesFlows.run(
            sandboxes, name, command, working_dir=working_dir, timeout=timeout
        )
        command_id = placed.metadata.name
        ended = yield from waiting(
            self._client.wire,
            lambda _: SandboxesFlows.command(sandboxes, name, command_id),
            lambda seen: seen.status.state not in ("Pending", "Running"),
            timeout=None,
            describe=lambda _: f"command {command_id} has not ended",
        )
        return Record(
            {
                "name": command_id,
                "state": ended.status.state,
                "exitCode": ended.status.get("exitCode"),
                "message": ended.status.get("message"),
                "output": (yield from self._output(ended)),
            }
        )

    @operation
    def terminal(
        self,
        command: str | None = None,
        *,
        working_dir: str | None = None,
        size: tuple[int, int] | None = None,
        term: str | None = None,
    ) -> Flow[TerminalT]:
        """Open a terminal: a shell, or a command, to type into and to read from (NOD-444).

            with sandbox.terminal() as terminal:
                terminal.write("python3 -q\\n")
                terminal.read_until(">>> ")

        Args:
            command: a shell command line to run on it; ``None``: an interactive shell.
            working_dir: where to begin; ``None``: the sandbox's working folder.
            size: columns and rows of the window (80 and 24 without a word).
            term: type of the terminal (``xterm-256color`` without a word).

        Raises:
            SandboxNotRunningError: the sandbox's machine does not run.
            TooManyRequestsError: it has as many open terminals as there may be.
        """
        opened = yield from SandboxesFlows.open_terminal(
            self._client.sandboxes, self.name, command, working_dir=working_dir, size=size, term=term
        )
        return self._driven(opened)

    @operation
    def attach(self, terminal: str) -> Flow[TerminalT]:
        """Come back to a terminal, or watch it, too, by its id: with the last 256 KB of its output.

        Raises:
            SandboxNotRunningError: the sandbox's machine does not run.
            ConflictError: it ended a while ago.
        """
        return self._driven(
            (yield from SandboxesFlows.attach_terminal(self._client.sandboxes, self.name, terminal))
        )

    @operation
    def preview(self, port: int, *, ttl: str | None = None) -> Flow[Record]:
        """An address that shows the web service at a port: ``url``, ``expires_at`` (NOD-417).

            sandbox.run("nohup python3 -m http.server 8000 > /dev/null 2>&1 &")
            print(sandbox.preview(8000).url)

        Whoever knows the address may use the service, without a key, until then: it is a secret.

        Args:
            port: where the service listens, on loopback or on all addresses.
            ttl: how long the address works, such as ``"10m"``, at most ``"24h"``; ``None``: an hour.

        Raises:
            SandboxNotRunningError: the sandbox's machine does not run.
        """
        return (yield from SandboxesFlows.preview(self._client.sandboxes, self.name, port, ttl=ttl))

    def _driven(self, opened: Record) -> TerminalT:
        raise NotImplementedError

    def _calls_of(self, opened: Record) -> TerminalCalls:
        calls, terminal = self._client.sandboxes, opened.metadata.name
        return TerminalCalls(
            attach=lambda: calls.attach_terminal(self.name, terminal),
            look=lambda: calls.terminal(self.name, terminal),
            end=lambda: calls.close_terminal(self.name, terminal),
        )

    def _output(self, ended: Record) -> Flow[str | None]:
        """What an ended command has put out; None where its machine has taken that along."""
        try:
            return (yield from SandboxesFlows.output(self._client.sandboxes, self.name, ended.metadata.name))
        except OutputGoneError:
            return None

    def _settled(self, phases: tuple[str, ...], timeout: float) -> Flow[Record]:
        def there(thing: Record) -> bool:
            return status_of(thing).phase in phases

        sandboxes = self._client.sandboxes
        return status_of((yield from ResourceFlows.wait_for(sandboxes, self.name, there, timeout=timeout)))

    @operation
    def delete(self, *, timeout: float = CLEAN_UP_SECONDS) -> Flow[None]:
        """Remove the sandbox; returns when it is gone.

        Raises:
            WaitTimeoutError: asked for, but not done in time; it will be.
        """
        yield from ResourceFlows.delete(self._client.sandboxes, self.name)
        yield from ResourceFlows.wait_gone(self._client.sandboxes, self.name, timeout=timeout)


class Sandbox(SandboxFlows["Terminal"], Blocking):
    """A handle to one sandbox; make it with ``Sandbox.create(…)`` or ``Sandbox.from_name(…)``."""

    @classmethod
    def create(
        cls,
        name: str,
        *,
        project: str | None = None,
        client: Client | None = None,
        **settings: Unpack[SandboxSettings],
    ) -> Sandbox:
        """Create a sandbox, whose machine is asked for at once.

        Args:
            name: its name.
            image: environment image.
            size: ``"Starter"``, ``"Standard"`` or ``"Performance"``, in place of ``cpu`` and ``memory``.
            cpu, memory: processors and GiB, a pair that there is (1 and 2 without a word).
            gpu: how many GPUs, beside ``size`` or ``cpu`` and ``memory``; most servers have none.
            idle_timeout: stop it after so much idle time, such as ``"10m"``.
            ttl: delete it after that time, such as ``"24h"``.
            network: ``nodus.Egress.deny()``, ``.allow([...])`` or ``.open()`` (default: deny).
            state_dir: the folder that is saved when it stops and is there when it starts again; ``None``: none is.
            max_cost: US dollars that it may spend on compute.
            env: environment variables of its commands, values by name.
            secrets: variables that get a field of a project's Secret: ``{"DEPLOY_KEY": ("deploy", "token")}``.
            project: its project; ``None``: the configured one.
            client: where to make it; ``None``: the configured server.

        Raises:
            AlreadyExistsError: the name is taken.
            InvalidError: the server refuses a field.
        """
        sandbox = cls.from_name(name, project=project, client=client)
        sandbox._client.sandboxes.create(name, _spec(settings))
        return sandbox

    @classmethod
    def from_name(cls, name: str, *, project: str | None = None, client: Client | None = None) -> Sandbox:
        """A handle to an existing sandbox; nothing is sent yet."""
        return cls(name, client=(client or default_client()).in_project(project))

    def _driven(self, opened: Record) -> Terminal:
        from nodus._terminals import Terminal  # noqa: PLC0415 (`import nodus` does without asyncio)

        return Terminal(opened, self._calls_of(opened))


class AsyncSandbox(SandboxFlows["AsyncTerminal"], Concurrent):
    """``Sandbox`` for asyncio: the same, awaited, ``create`` too."""

    @classmethod
    async def create(
        cls,
        name: str,
        *,
        client: AsyncClient,
        project: str | None = None,
        **settings: Unpack[SandboxSettings],
    ) -> AsyncSandbox:
        """As of ``Sandbox``; the client is yours to open and to close."""
        sandbox = cls.from_name(name, client=client, project=project)
        await sandbox._client.sandboxes.create(name, _spec(settings))
        return sandbox

    @classmethod
    def from_name(cls, name: str, *, client: AsyncClient, project: str | None = None) -> AsyncSandbox:
        """A handle to an existing sandbox; nothing is sent yet."""
        return cls(name, client=client.in_project(project))

    def _driven(self, opened: Record) -> AsyncTerminal:
        from nodus._terminals import AsyncTerminal  # noqa: PLC0415

        return AsyncTerminal(opened, self._calls_of(opened))


def _spec(settings: SandboxSettings) -> dict[str, Any]:
    unknown = settings.keys() - SandboxSettings.__annotations__.keys()
    if unknown:
        raise TypeError(f"unknown arguments: {', '.join(sorted(unknown))}")
    network, state_dir = settings.get("network"), settings.get("state_dir")
    spec = {
        "image": settings.get("image"),
        "resources": _resources(settings),
        "idleTimeout": settings.get("idle_timeout"),
        "ttl": settings.get("ttl"),
        "network": network.to_spec() if network else None,
        "continuity": {"mode": "Snapshotted", "stateDir": state_dir} if state_dir else None,
        "maxCostUSD": money(settings.get("max_cost")),
        **variables_spec(settings.get("env"), settings.get("secrets")),
    }
    return {name: value for name, value in spec.items() if value is not None}


def _resources(settings: SandboxSettings) -> dict[str, str | int] | None:
    given = {"cpu": settings.get("cpu"), "memory": settings.get("memory")}
    numbers = {name: str(value) for name, value in given.items() if value is not None}
    size, gpu = settings.get("size"), settings.get("gpu")
    gpus = {} if gpu is None else {"gpu": gpu}
    if size is None:
        return {**numbers, **gpus} or None
    if size not in SIZES:
        raise ValueError(f"size must be one of {', '.join(SIZES)}, not {size!r}")
    if numbers:
        raise ValueError("size stands for cpu and memory: give it alone")
    return {**SIZES[size], **gpus}
