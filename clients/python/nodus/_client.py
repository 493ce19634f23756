"""The clients: resources of one project, over one set of connections."""

from __future__ import annotations

import atexit
import threading
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from nodus import _kinds
from nodus._agentgroups import AgentGroups, AsyncAgentGroups
from nodus._agentruns import AgentRuns, AsyncAgentRuns
from nodus._machines import AsyncSandboxes, Sandboxes
from nodus._resources import AsyncResource, Resource, ResourceFlows
from nodus._transport import Transport
from nodus._wire import BlockingWire, ConcurrentWire, Wire

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from nodus._config import Settings

ResourceT = TypeVar("ResourceT", bound=ResourceFlows)
RunsT = TypeVar("RunsT", bound=ResourceFlows)
GroupsT = TypeVar("GroupsT", bound=ResourceFlows)
SandboxesT = TypeVar("SandboxesT", bound=ResourceFlows)


class ClientFlows(Generic[ResourceT, RunsT, GroupsT, SandboxesT]):
    """What both clients are: settings, and a resource for each kind."""

    _resource: type[ResourceT]
    _runs: type[RunsT]
    _groups: type[GroupsT]
    _sandboxes: type[SandboxesT]

    def __init__(
        self,
        *,
        server: str | None = None,
        token: str | None = None,
        org: str | None = None,
        project: str | None = None,
        context: str | None = None,
    ) -> None:
        def resolved() -> Settings:
            from nodus._config import resolve  # noqa: PLC0415 (`import nodus` does without it)

            return resolve(server=server, token=token, org=org, project=project, context=context)

        self._resolve = resolved

    def _new_wire(self) -> Wire:
        raise NotImplementedError

    @cached_property
    def settings(self) -> Settings:
        """The settings in force.

        Raises:
            ConfigError: there is no server or no key.
        """
        return self._resolve()

    @cached_property
    def wire(self) -> Wire:
        """The connections; those of ``in_project`` clients are the same."""
        return self._new_wire()

    @cached_property
    def transport(self) -> Transport:
        """What makes the calls."""
        return Transport(self.settings, self.wire)

    @property
    def project(self) -> str:
        """The project whose objects this client reads and writes."""
        return self.settings.project

    def in_project(self, project: str | None) -> Self:
        """The same client for another project (``None``: itself)."""
        if project is None or project == self.project:
            return self
        other = type(self)()
        other.__dict__["settings"] = self.settings.in_project(project)
        other.__dict__["wire"] = self.wire
        return other

    @cached_property
    def agents(self) -> ResourceT:
        """Agents: reusable definitions."""
        return self._resource(self, _kinds.AGENT)

    @cached_property
    def agentruns(self) -> RunsT:
        """Runs: one task each."""
        return self._runs(self, _kinds.AGENT_RUN)

    @cached_property
    def agentgroups(self) -> GroupsT:
        """Groups of runs."""
        return self._groups(self, _kinds.AGENT_GROUP)

    @cached_property
    def environments(self) -> ResourceT:
        """Environments that agents are evaluated in."""
        return self._resource(self, _kinds.ENVIRONMENT)

    @cached_property
    def environmentimages(self) -> ResourceT:
        """Images that sandboxes start from."""
        return self._resource(self, _kinds.ENVIRONMENT_IMAGE)

    @cached_property
    def endpoints(self) -> ResourceT:
        """Named models."""
        return self._resource(self, _kinds.ENDPOINT)

    @cached_property
    def sandboxes(self) -> SandboxesT:
        """Sandboxes of one's own."""
        return self._sandboxes(self, _kinds.SANDBOX)

    @cached_property
    def secrets(self) -> ResourceT:
        """Secrets: values that are written and never read back; ``status.fields`` names them (NOD-465)."""
        return self._resource(self, _kinds.SECRET)

    @cached_property
    def budgets(self) -> ResourceT:
        """Budgets: limits of what a project spends on models and compute together."""
        return self._resource(self, _kinds.BUDGET)

    @cached_property
    def connections(self) -> ResourceT:
        """Connections to where repositories are kept."""
        return self._resource(self, _kinds.CONNECTION)

    @cached_property
    def organizations(self) -> ResourceT:
        """The caller's own organization."""
        return self._resource(self, _kinds.ORGANIZATION)

    @cached_property
    def projects(self) -> ResourceT:
        """The organization's projects."""
        return self._resource(self, _kinds.PROJECT)

    @cached_property
    def apikeys(self) -> ResourceT:
        """The organization's API keys."""
        return self._resource(self, _kinds.API_KEY)

    def kind(self, word: str) -> ResourceT:
        """The resource of a kind by any of its words, such as ``agentruns``, ``ar`` or ``AgentRun``.

        Raises:
            ValueError: this client does not know the kind.
        """
        found = _kinds.find(word)
        if found is None:
            raise ValueError(f"no kind {word!r} (kinds: {', '.join(kind.plural for kind in _kinds.KINDS)})")
        return getattr(self, found.plural)


AnyClient = ClientFlows[Any, Any, Any, Any]


class Client(ClientFlows[Resource, AgentRuns, AgentGroups, Sandboxes]):
    """Calls a Nodus server; every call returns when it is done.

    Without arguments it uses what `nodus login` stored, or ``NODUS_SERVER``, ``NODUS_TOKEN``, ``NODUS_ORG`` and
    ``NODUS_PROJECT`` (NOD-515, NODQ-98). Making one sends nothing and reads no file; the first call does.

        client = nodus.Client(project="staging")
        for run in client.agentruns.list():
            print(run.metadata.name, run.status.phase)

    It may be used from several threads.

    Args:
        server: address below which ``/apis`` lies.
        token: the API key.
        org: organization; may be left out when the key belongs to one only (NODQ-97).
        project: the namespace of the objects.
        context: name of a context of the configuration file, instead of its current one.
    """

    _resource = Resource
    _runs = AgentRuns
    _groups = AgentGroups
    _sandboxes = Sandboxes

    def _new_wire(self) -> BlockingWire:
        return BlockingWire()

    def close(self) -> None:
        """Close the connections."""
        wire = self.__dict__.get("wire")
        if wire is not None:
            wire.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncClient(ClientFlows[AsyncResource, AsyncAgentRuns, AsyncAgentGroups, AsyncSandboxes]):
    """``Client`` for asyncio: the same calls, awaited; streams are read by ``async for``.

        async with nodus.AsyncClient() as client:
            async for run in client.agentruns.list():
                print(run.metadata.name, run.status.phase)

    It belongs to the event loop in which it was first used. The arguments are those of ``Client``.
    """

    _resource = AsyncResource
    _runs = AsyncAgentRuns
    _groups = AsyncAgentGroups
    _sandboxes = AsyncSandboxes

    def _new_wire(self) -> ConcurrentWire:
        return ConcurrentWire()

    async def close(self) -> None:
        """Close the connections."""
        wire = self.__dict__.get("wire")
        if wire is not None:
            await wire.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


_default_lock = threading.Lock()
_defaults: dict[Settings, Client] = {}


def default_client() -> Client:
    """The client that is used where none is given: one for each configuration in force."""
    settings = Client().settings
    with _default_lock:
        if settings not in _defaults:
            client = Client()
            client.__dict__["settings"] = settings
            _defaults[settings] = client
            if len(_defaults) == 1:
                atexit.register(close_defaults)
        return _defaults[settings]


def close_defaults() -> None:
    """Close the connections of the clients that nobody made by hand."""
    with _default_lock:
        while _defaults:
            _defaults.popitem()[1].close()
