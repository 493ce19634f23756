"""What an agent is described with in Python, and the ``spec`` that it makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal, NotRequired, TypedDict, cast

from nodus._egress import Egress
from nodus._money import money
from nodus._variables import Env, SecretFields, variables_spec

Family = Literal["haiku", "sonnet", "opus", "fable"]
Protocol = Literal["OpenAI", "Anthropic"]
# The model of an own Anthropic key when none is named (NODQ-28).
OWN_KEY_MODEL = "claude-sonnet-5-5"


class GitSource(TypedDict):
    """A connected GitHub repository, ``owner/name``, and a branch, tag or commit."""

    repo: str
    ref: NotRequired[str]


class ArchiveSource(TypedDict):
    """An archive (tar or zip) at an https address of a host that the operator has allowed.

    ``sha256``: another one is refused. ``stripComponents``: folders at the beginning of each name that are left away.
    """

    url: str
    sha256: NotRequired[str]
    stripComponents: NotRequired[int]


class Source(TypedDict, total=False):
    """Where the workspace's files come from: one of the two."""

    git: GitSource
    archive: ArchiveSource


class AgentSettings(TypedDict, total=False):
    """The settings that every agent class takes by keyword."""

    system: str | None
    per_run_max_cost: str | Decimal | int | None
    max_tool_calls: int | None
    max_parallel_agents: int | None
    max_tokens: int | None
    working_dir: str | None
    state_dir: str | None
    source: Source | None
    setup: str | None
    network: Egress | None
    image: str | None
    env: Env | None
    secrets: SecretFields | None


class ClaudeAccess(TypedDict, total=False):
    """The arguments of a Claude agent that say which model it is on."""

    families: Sequence[Family] | None
    model: str | None
    api_key_secret: str | None
    api_key_field: str | None


class ModelAccess(TypedDict):
    """The arguments of another agent that say which model it is on."""

    model: str
    protocol: NotRequired[Protocol | None]
    api_key_secret: NotRequired[str | None]
    api_key_field: NotRequired[str | None]
    base_url: NotRequired[str | None]


class ClaudeArguments(ClaudeAccess, AgentSettings):
    """What a Claude agent takes beside its name and its place."""


class ModelArguments(ModelAccess, AgentSettings):
    """What another agent takes beside its name and its place."""


def parted(arguments: Mapping[str, Any], access: type) -> tuple[dict[str, Any], AgentSettings]:
    """The arguments that say which model, and the others."""
    names = access.__annotations__.keys()
    chosen = {name: value for name, value in arguments.items() if name in names}
    others = {name: value for name, value in arguments.items() if name not in names}
    return chosen, cast("AgentSettings", others)


def claude_model(access: ClaudeAccess) -> dict[str, Any]:
    """``spec.model`` of a Claude agent.

    Raises:
        ValueError: arguments that exclude each other (NODQ-90).
        TypeError: families that are no list.
    """
    families, model, secret = access.get("families"), access.get("model"), access.get("api_key_secret")
    if families is not None and (model or secret):
        raise ValueError("families restricts the router, which a fixed model or an own key does not use")
    if isinstance(families, str):
        raise TypeError(f"families must be a list: [{families!r}]")
    return {
        "access": "BYOK" if secret else "OnDemand" if model else "Nodus",
        "name": model or (OWN_KEY_MODEL if secret else None),
        "families": None if families is None else list(families),
        "apiKeySecret": secret,
        "apiKeyField": _only_with(secret, "api_key_field", access.get("api_key_field")),
    }


def named_model(access: ModelAccess) -> dict[str, Any]:
    """``spec.model`` of an agent on a model of the catalogue or of a provider.

    Raises:
        ValueError: an argument that is for an own key, without one.
    """
    secret = access.get("api_key_secret")
    return {
        "access": "BYOK" if secret else "OnDemand",
        "name": access["model"],
        "protocol": _only_with(secret, "protocol", access.get("protocol")),
        "apiKeySecret": secret,
        "apiKeyField": _only_with(secret, "api_key_field", access.get("api_key_field")),
        "baseURL": _only_with(secret, "base_url", access.get("base_url")),
    }


def agent_spec(model: Mapping[str, Any], settings: AgentSettings) -> dict[str, Any]:
    """The ``spec`` of an agent on this model.

    Raises:
        ValueError: an amount that is none.
        TypeError: an argument that does not exist, or money given as a binary float.
    """
    unknown = settings.keys() - AgentSettings.__annotations__.keys()
    if unknown:
        raise TypeError(f"unknown arguments: {', '.join(sorted(unknown))}")
    state_dir = settings.get("state_dir")
    network = settings.get("network")
    return _given(
        {
            "system": settings.get("system"),
            "model": _given({**model, "maxTokens": settings.get("max_tokens")}),
            "perRunMaxCostUSD": money(settings.get("per_run_max_cost")),
            "maxToolCalls": settings.get("max_tool_calls"),
            "maxParallelAgents": settings.get("max_parallel_agents"),
            "workingDir": settings.get("working_dir"),
            "continuity": {"mode": "Snapshotted", "stateDir": state_dir} if state_dir else None,
            "source": settings.get("source"),
            "setup": settings.get("setup"),
            "network": network.to_spec() if network else None,
            "image": settings.get("image"),
            **variables_spec(settings.get("env"), settings.get("secrets")),
        }
    )


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _only_with(api_key_secret: str | None, argument: str, value: str | None) -> str | None:
    if value is not None and not api_key_secret:
        raise ValueError(f"{argument} is for your own key: give api_key_secret, too")
    return value
