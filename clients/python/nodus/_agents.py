"""Agents from Python: described when made, created on first use (NOD-503)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, Self, Unpack, cast

from nodus._agent_spec import (
    AgentSettings,
    ClaudeAccess,
    ClaudeArguments,
    Family,
    ModelAccess,
    ModelArguments,
    Protocol,
    agent_spec,
    claude_model,
    named_model,
    parted,
)
from nodus._client import AnyClient, AsyncClient, Client, default_client
from nodus._flow import Blocking, Concurrent, Flow, operation
from nodus._resources import ResourceFlows
from nodus._runs import AgentRun, AsyncAgentRun, RunT, answer_of, start_run

TEMPLATE_PROJECT = "nodus"


class AgentFlows(Generic[RunT]):
    """What all ways to describe an agent share."""

    _run: type[RunT]

    def _begin(
        self, name: str, spec: Mapping[str, Any] | None, *, project: str | None, client: AnyClient | None
    ) -> None:
        self.name = name
        self._spec = spec
        self._project = project
        self._given_client = client
        self._applied = spec is None

    def _client(self) -> AnyClient:
        return (self._given_client or default_client()).in_project(self._project)

    @property
    def manifest(self) -> dict[str, Any]:
        """The object that the first use applies.

        Raises:
            ValueError: the agent was made with ``from_name`` and describes nothing.
        """
        if self._spec is None:
            raise ValueError(f"agent {self.name} was named, not described")
        return {"metadata": {"name": self.name}, "spec": dict(self._spec)}

    @operation
    def submit(
        self,
        prompt: str,
        *,
        keep_alive: bool = False,
        deadline: str | None = None,
        parallelism: int | None = None,
        name: str | None = None,
    ) -> Flow[RunT]:
        """Start a run and return its handle at once (NOD-512).

        Args:
            prompt: the task, at most 256 KiB of UTF-8.
            keep_alive: wait for messages after each answer instead of finishing.
            deadline: the run ends ``Failed`` with ``DeadlineExceeded`` if it is not done by then, such as ``"20s"``
                or ``"2h"``.
            parallelism: how many subtasks may work together; ``None`` or 0: the server decides.
            name: the run's name; ``None``: one is made from the agent's.

        Raises:
            AlreadyExistsError: ``name`` is taken.
            AgentStoppedError: the agent takes no runs.
            InvalidError: the server refuses a field of the agent or the run.
            OutcomeUnknownError: it is not known whether the run was created; the error's ``run`` is its handle.
        """
        client = self._client()
        yield from self._apply(client)
        spec: dict[str, Any] = {"agent": self.name, "input": prompt}
        if keep_alive:
            spec["keepAlive"] = True
        if deadline is not None:
            spec["deadline"] = deadline
        if parallelism is not None:
            spec["parallelism"] = parallelism
        return (yield from start_run(self._run, client, self.name, spec, name))

    @operation
    def remote(
        self,
        prompt: str,
        *,
        deadline: str | None = None,
        parallelism: int | None = None,
        name: str | None = None,
        timeout: float | None = None,
    ) -> Flow[str]:
        """Run to the end and return the answer (NOD-511).

        Args:
            prompt, deadline, parallelism, name: as for ``submit``.
            timeout: seconds to wait; ``None``: as long as it takes. The run itself goes on after it.

        Raises:
            RunFailedError: the run ended ``Failed`` or ``Cancelled``.
            RunBlockedError: the run waits for a person.
            WaitTimeoutError: no answer in time.
        """
        submitted = AgentFlows[RunT].submit(
            self, prompt, deadline=deadline, parallelism=parallelism, name=name
        )
        return (yield from answer_of((yield from submitted), timeout))

    def _apply(self, client: AnyClient) -> Flow[None]:
        if self._applied:
            return
        lock = self.__dict__.setdefault("_lock", client.wire.lock())
        yield lock.acquire
        try:
            if not self._applied:
                yield from ResourceFlows.apply(client.agents, self.manifest)
                self._applied = True
        finally:
            lock.release()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


class Agent(AgentFlows[AgentRun], Blocking):
    """What the agents share whose runs are blocked for."""

    _run = AgentRun

    @classmethod
    def from_name(cls, name: str, *, project: str | None = None, client: Client | None = None) -> Self:
        """An agent that exists already; none is created or changed (NOD-507).

        Its runs are made in ``project``. The templates of project ``nodus`` are the exception: their runs are
        made, and billed, in your configured project (NODQ-22).
        """
        agent = cls.__new__(cls)
        agent._begin(name, None, project=None if project == TEMPLATE_PROJECT else project, client=client)
        return agent


class AsyncAgent(AgentFlows[AsyncAgentRun], Concurrent):
    """What the agents share whose runs are awaited."""

    _run = AsyncAgentRun

    @classmethod
    def from_name(cls, name: str, *, client: AsyncClient, project: str | None = None) -> Self:
        """As of ``ClaudeAgent``; the client is yours to open and to close."""
        agent = cls.__new__(cls)
        agent._begin(name, None, project=None if project == TEMPLATE_PROJECT else project, client=client)
        return agent


class ClaudeAgent(Agent):
    """An agent on Claude: routed by Nodus, one fixed model of Nodus, or your own Anthropic key.

        agent = nodus.ClaudeAgent("helper", system="You are careful.", families=["haiku", "sonnet"])
        print(agent.remote("Use the shell to print the Python version"))

    Making one sends nothing; the agent is created, or brought to this description, by its first use.

    Args:
        name: the agent's name.
        families: families that the router may choose from; ``None``: all (NOD-012).
        model: a model that Nodus serves, instead of the router (NOD-505); with ``api_key_secret`` the provider's
            model, by default claude-sonnet-5-5.
        api_key_secret: name of the project's Secret that holds your Anthropic key (NOD-125).
        api_key_field: its field, when it holds several.
        project: project of the agent and its runs; ``None``: the configured one.
        client: the client to use; ``None``: the configured one.
        system: the system prompt.
        per_run_max_cost: US dollars that one run may spend on models, such as ``"0.50"`` (default 1.00).
        max_tool_calls: commands that a run may make per turn (default 50).
        max_parallel_agents: ceiling of subagents at work; ``None`` or 0: unlimited.
        max_tokens: output tokens of one model call.
        working_dir: folder in which setup and commands run.
        state_dir: folder to be saved and restored over a restart (NOD-174).
        source: ``{"git": {"repo": "owner/name", "ref": "main"}}``, or ``{"archive": {"url": "https://…/site.tar.gz"}}``.
        setup: shell command that runs once before the model starts.
        network: ``nodus.Egress.deny()``, ``.allow([...])`` or ``.open()`` (default: deny).
        image: environment image of the sandbox.
        env: environment variables of its commands, values by name.
        secrets: variables that get a field of a project's Secret: ``{"DEPLOY_KEY": ("deploy", "token")}``.

    Raises:
        ValueError: arguments that exclude each other (NODQ-90).
        TypeError: an argument that does not exist, or money given as a binary float.
    """

    def __init__(
        self,
        name: str,
        *,
        families: Sequence[Family] | None = None,
        model: str | None = None,
        api_key_secret: str | None = None,
        api_key_field: str | None = None,
        project: str | None = None,
        client: Client | None = None,
        **settings: Unpack[AgentSettings],
    ) -> None:
        access = ClaudeAccess(
            families=families, model=model, api_key_secret=api_key_secret, api_key_field=api_key_field
        )
        self._begin(name, agent_spec(claude_model(access), settings), project=project, client=client)


class AsyncClaudeAgent(AsyncAgent):
    """``ClaudeAgent`` for asyncio: ``await agent.remote(…)``, ``run = await agent.submit(…)``.

        async with nodus.AsyncClient() as client:
            agent = nodus.AsyncClaudeAgent("helper", client=client, system="You are careful.")
            print(await agent.remote("Use the shell to print the Python version"))

    The client is yours to open and to close; the other arguments and the errors are those of ``ClaudeAgent``.
    """

    def __init__(
        self,
        name: str,
        *,
        client: AsyncClient,
        project: str | None = None,
        **arguments: Unpack[ClaudeArguments],
    ) -> None:
        access, settings = parted(arguments, ClaudeAccess)
        self._begin(
            name,
            agent_spec(claude_model(cast("ClaudeAccess", access)), settings),
            project=project,
            client=client,
        )


class ModelAgent(Agent):
    """An agent on a model of the Nodus catalogue, or on a provider of your own.

        agent = nodus.ModelAgent("researcher", model="openai/gpt-oss-20b", max_parallel_agents=8)
        own = nodus.ModelAgent("researcher", protocol="OpenAI", model="gpt-4.1-mini", api_key_secret="model-key")

    Args:
        model: id in the catalogue, ``endpoint/NAME``, or with ``api_key_secret`` the provider's model id.
        protocol: wire format of your provider (default of the server: Anthropic).
        api_key_secret, api_key_field: the project's Secret with your key, and its field (NOD-112).
        base_url: public HTTPS address of a compatible provider (NOD-115).

    The other arguments and the errors are those of ``ClaudeAgent``.
    """

    def __init__(
        self,
        name: str,
        *,
        model: str,
        protocol: Protocol | None = None,
        api_key_secret: str | None = None,
        api_key_field: str | None = None,
        base_url: str | None = None,
        project: str | None = None,
        client: Client | None = None,
        **settings: Unpack[AgentSettings],
    ) -> None:
        access = ModelAccess(
            model=model,
            protocol=protocol,
            api_key_secret=api_key_secret,
            api_key_field=api_key_field,
            base_url=base_url,
        )
        self._begin(name, agent_spec(named_model(access), settings), project=project, client=client)


class AsyncModelAgent(AsyncAgent):
    """``ModelAgent`` for asyncio; the client is yours to open and to close."""

    def __init__(
        self,
        name: str,
        *,
        client: AsyncClient,
        project: str | None = None,
        **arguments: Unpack[ModelArguments],
    ) -> None:
        access, settings = parted(arguments, ModelAccess)
        self._begin(
            name,
            agent_spec(named_model(cast("ModelAccess", access)), settings),
            project=project,
            client=client,
        )
