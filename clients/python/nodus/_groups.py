"""Handles of groups (NOD-518, NODQ-72)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic

from nodus._agentgroups import AgentGroupsFlows
from nodus._client import AsyncClient, Client, default_client
from nodus._flow import Blocking, Concurrent, Flow, collected, operation, reading
from nodus._handles import Handle
from nodus._kinds import AGENT_GROUP
from nodus._money import money
from nodus._readiness import require_available
from nodus._record import Record
from nodus._runs import CLEAN_UP_SECONDS, AgentRun, AsyncAgentRun, RunT, start_run, status_of
from nodus._waiting import waiting
from nodus.errors import UnexpectedAnswerError

if TYPE_CHECKING:
    from decimal import Decimal

Records = list[Record]
Evaluation = Mapping[str, Any]
"""``environment`` (``"NAME@VERSION"``), ``split``, ``tasks``, ``repetitions``, ``seed``, ``timeout``."""


class AgentGroupFlows(Handle, Generic[RunT]):
    """A handle to one group.

    A group that the server keeps and does not act on yet says so: what needs it to act raises
    ``errors.NotAvailableError``.
    """

    _run: type[RunT]

    @reading
    def status(self) -> Flow[Record]:
        """The group's status now; each access reads it from the server."""
        return status_of((yield from self._read()))

    @operation
    def submit(
        self,
        prompt: str,
        *,
        key: str,
        depends_on: Sequence[str] = (),
        deadline: str | None = None,
        parallelism: int | None = None,
    ) -> Flow[RunT]:
        """Add a run of the group's agent and return its handle (NODQ-72).

        Args:
            prompt: the task, at most 256 KiB of UTF-8.
            key: the task's name in the group; the run is called ``GROUP-KEY`` (NOD-306).
            depends_on: keys of tasks that must have succeeded before it starts.
            deadline, parallelism: as for an agent's ``submit``.

        Raises:
            NotAvailableError: groups take no members yet.
            ConflictError: the group is sealed, or has this task already.
        """
        group = yield from self._acting()
        spec: dict[str, Any] = {
            "agent": _agent_of(group),
            "input": prompt,
            "group": self.name,
            "taskKey": key,
        }
        if depends_on:
            spec["dependsOn"] = list(depends_on)
        if deadline is not None:
            spec["deadline"] = deadline
        if parallelism is not None:
            spec["parallelism"] = parallelism
        return (yield from start_run(self._run, self._client, spec["agent"], spec, f"{self.name}-{key}"))

    @operation
    def seal(self) -> Flow[Record]:
        """Close the group for new runs, which cannot be undone (NOD-351); returns its status."""
        sealed = yield from AgentGroupsFlows.patch(self._groups, self.name, {"spec": {"sealed": True}})
        return status_of(sealed)

    @operation
    def wait(self, timeout: float | None = None) -> Flow[Record]:
        """Wait until the group has finished, and return its status; every phase returns (NODQ-11).

        Args:
            timeout: seconds; ``None``: as long as it takes.

        Raises:
            NotAvailableError: groups are not run yet, so it would never finish.
            WaitTimeoutError: the time is over; the group goes on.
        """

        def late(status: Record | None) -> str:
            phase = None if status is None else status.get("phase")
            return f"group {self.name} is {phase or 'not started'} after {timeout:g} s; it goes on"

        def read(within: float) -> Flow[Record]:
            return status_of((yield from self._acting(within)))

        return (
            yield from waiting(
                self._client.wire,
                read,
                lambda status: status.get("phase") in AGENT_GROUP.finished,
                timeout=timeout,
                describe=late,
            )
        )

    @operation
    def results(self) -> Flow[Records]:
        """The cases of an evaluation: ``task_id``, ``state``, and when scored ``verdict`` (NOD-384).

        Raises:
            NotAvailableError: groups are not run yet.
        """
        return (yield from collected(AgentGroupsFlows.results(self._groups, self.name)))

    @operation
    def delete(self, *, timeout: float = CLEAN_UP_SECONDS) -> Flow[None]:
        """Remove the group and its runs; returns when it is gone (NOD-358).

        Raises:
            WaitTimeoutError: asked for, but not done in time; it will be.
        """
        yield from AgentGroupsFlows.delete(self._groups, self.name)
        yield from AgentGroupsFlows.wait_gone(self._groups, self.name, timeout=timeout)

    @property
    def _groups(self) -> AgentGroupsFlows:
        return self._client.agentgroups

    def _read(self, within: float | None = None) -> Flow[Record]:
        return AgentGroupsFlows.get(self._groups, self.name, within=within)

    def _acting(self, within: float | None = None) -> Flow[Record]:
        group = yield from self._read(within)
        require_available(AGENT_GROUP, self.name, group)
        return group


class AgentGroup(AgentGroupFlows[AgentRun], Blocking):
    """A handle to one group of runs; make it with ``AgentGroup.create(…)`` or ``AgentGroup.from_name(…)``."""

    _run = AgentRun

    @classmethod
    def create(
        cls,
        name: str,
        *,
        agent: str,
        max_active: int | None = None,
        max_cost: str | Decimal | int | None = None,
        evaluation: Evaluation | None = None,
        project: str | None = None,
        client: Client | None = None,
    ) -> AgentGroup:
        """Create a group of runs of one agent (NOD-302, NOD-518).

        Args:
            name: the group's name.
            agent: name of the agent of all its runs.
            max_active: how many run at the same time (default of the server: 10).
            max_cost: US dollars that the group may spend on models, such as ``"0.60"``.
            evaluation: evaluate the agent on tasks of an Environment: ``environment`` (``"NAME@VERSION"``), ``split``,
                ``tasks``, ``repetitions``, ``seed``, ``timeout``.
            project: its project; ``None``: the configured one.
            client: where to make it; ``None``: the configured server.

        Raises:
            AlreadyExistsError: the name is taken.
            InvalidError: the server refuses a field.
        """
        group = cls.from_name(name, project=project, client=client)
        group._client.agentgroups.create(name, _spec(agent, max_active, max_cost, evaluation))
        return group

    @classmethod
    def from_name(cls, name: str, *, project: str | None = None, client: Client | None = None) -> AgentGroup:
        """A handle to an existing group; nothing is sent yet."""
        return cls(name, client=(client or default_client()).in_project(project))


class AsyncAgentGroup(AgentGroupFlows[AsyncAgentRun], Concurrent):
    """``AgentGroup`` for asyncio: the same, awaited, ``create`` too."""

    _run = AsyncAgentRun

    @classmethod
    async def create(
        cls,
        name: str,
        *,
        client: AsyncClient,
        agent: str,
        max_active: int | None = None,
        max_cost: str | Decimal | int | None = None,
        evaluation: Evaluation | None = None,
        project: str | None = None,
    ) -> AsyncAgentGroup:
        """As of ``AgentGroup``; the client is yours to open and to close."""
        group = cls.from_name(name, client=client, project=project)
        await group._client.agentgroups.create(name, _spec(agent, max_active, max_cost, evaluation))
        return group

    @classmethod
    def from_name(cls, name: str, *, client: AsyncClient, project: str | None = None) -> AsyncAgentGroup:
        """A handle to an existing group; nothing is sent yet."""
        return cls(name, client=client.in_project(project))


def _spec(
    agent: str, max_active: int | None, max_cost: str | Decimal | int | None, evaluation: Evaluation | None
) -> dict[str, Any]:
    spec: dict[str, Any] = {"agent": agent}
    if max_active is not None:
        spec["limits"] = {"maxActive": max_active}
    if max_cost is not None:
        spec["maxCostUSD"] = money(max_cost)
    if evaluation is not None:
        spec["evaluation"] = dict(evaluation)
        environment = evaluation.get("environment")
        if isinstance(environment, str):
            name, _, version = environment.partition("@")
            spec["evaluation"]["environment"] = (
                {"name": name, "version": version} if version else {"name": name}
            )
    return spec


def _agent_of(group: Record) -> str:
    spec = group.get("spec")
    agent = spec.get("agent") if isinstance(spec, Record) else None
    if not isinstance(agent, str):
        raise UnexpectedAnswerError("the server shows a group without an agent")
    return agent
