"""The client: resources of one project, over one connection."""

from __future__ import annotations

import atexit
import threading
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from nodus import _config
from nodus._resources import AgentRuns, Agents, Budgets, Resource, Secrets
from nodus._transport import Transport

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self


class Client:
    """Calls a Nodus server.

    Without arguments it uses what `nodus login` stored, or ``NODUS_SERVER``, ``NODUS_TOKEN``, ``NODUS_ORG`` and
    ``NODUS_PROJECT`` (NOD-515, NODQ-98). Making one sends nothing and reads no file; the first call does.

        client = nodus.Client(project="staging")
        for run in client.agentruns.list():
            print(run.metadata.name, run.status.phase)

    Args:
        server: address below which ``/apis`` lies.
        token: the API key.
        org: organization; may be left out when the key belongs to one only (NODQ-97).
        project: the namespace of the objects.
        context: name of a context of the configuration file, instead of its current one.
    """

    def __init__(
        self,
        *,
        server: str | None = None,
        token: str | None = None,
        org: str | None = None,
        project: str | None = None,
        context: str | None = None,
    ) -> None:
        self._resolve = partial(
            _config.resolve, server=server, token=token, org=org, project=project, context=context
        )

    @cached_property
    def settings(self) -> _config.Settings:
        """The settings in force.

        Raises:
            ConfigError: there is no server or no key.
        """
        return self._resolve()

    @cached_property
    def transport(self) -> Transport:
        """What sends the calls; one per client."""
        return Transport(self.settings)

    @property
    def project(self) -> str:
        """The project whose objects this client reads and writes."""
        return self.settings.project

    def in_project(self, project: str | None) -> Client:
        """The same client for another project (``None``: itself)."""
        if project is None or project == self.project:
            return self
        other = Client()
        other.__dict__["settings"] = replace(self.settings, project=project)
        other.__dict__["transport"] = self.transport
        return other

    @cached_property
    def agents(self) -> Agents:
        """The agents of the project."""
        return Agents(self)

    @cached_property
    def agentruns(self) -> AgentRuns:
        """The runs of the project."""
        return AgentRuns(self)

    @cached_property
    def budgets(self) -> Budgets:
        """The Budgets of the project."""
        return Budgets(self)

    @cached_property
    def secrets(self) -> Secrets:
        """The Secrets of the project."""
        return Secrets(self)

    def resource(self, kind: str) -> Resource:
        """The resource of a kind, such as ``Agent`` or ``AgentRun``.

        Raises:
            ValueError: this client does not know the kind.
        """
        known: dict[str, Resource] = {
            "Agent": self.agents,
            "AgentRun": self.agentruns,
            "Budget": self.budgets,
            "Secret": self.secrets,
        }
        if kind not in known:
            raise ValueError(f"no kind {kind!r} (kinds: {', '.join(known)})")
        return known[kind]

    def close(self) -> None:
        """Close the connections."""
        if "transport" in self.__dict__:
            self.transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


_default_lock = threading.Lock()
_defaults: dict[_config.Settings, Client] = {}


def default_client() -> Client:
    """The client that is used where none is given: one for each configuration in force."""
    settings = _config.resolve()
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
