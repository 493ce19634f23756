"""The one table of kinds: routes, permissions, discovery, schemas and tables of columns all come from it."""

from dataclasses import dataclass

from nodus_core.resources import (
    agent,
    agentgroup,
    agentrun,
    api_key,
    budget,
    connection,
    endpoint,
    environment,
    environmentimage,
    sandbox,
    secret,
    tenancy,
)
from nodus_core.resources.columns import Column
from nodus_core.resources.fields import LONGEST_LABEL, LONGEST_NAME, Spec

GROUP = "nodus.dev"
VERSION = "v1"
API_VERSION = f"{GROUP}/{VERSION}"


@dataclass(frozen=True)
class Kind:
    """One kind of `nodus.dev/v1`.

    `plural` is its word in paths and permissions. `namespaced`: its objects belong to a project, the others to an
    organization. `is_made_here`: callers make and remove them; else the operator does. `notice` is what an object says
    in its status while nothing acts on it yet; `phase` is then the one that it shows, for a kind that has phases.
    `longest_name` counts characters.
    """

    name: str
    plural: str
    singular: str
    spec: type[Spec]
    columns: tuple[Column, ...]
    short_names: tuple[str, ...] = ()
    namespaced: bool = True
    is_made_here: bool = True
    notice: str | None = None
    phase: str | None = None
    longest_name: int = LONGEST_NAME

    @property
    def list_name(self) -> str:
        """The kind of a list of its objects."""
        return f"{self.name}List"

    def permission(self, verb: str) -> str:
        """The word that allows `read` or `write` (NODQ-96)."""
        return f"{self.plural}:{verb}"


KINDS = (
    Kind("Agent", "agents", "agent", agent.AgentSpec, agent.COLUMNS),
    Kind("AgentRun", "agentruns", "agentrun", agentrun.AgentRunSpec, agentrun.COLUMNS, ("ar",)),
    Kind(
        "AgentGroup",
        "agentgroups",
        "agentgroup",
        agentgroup.AgentGroupSpec,
        agentgroup.COLUMNS,
        ("ag",),
        notice="Groups take no members yet: the group is kept and checked, and starts nothing.",
        phase="Pending",
        longest_name=agentgroup.LONGEST_NAME,
    ),
    Kind("Budget", "budgets", "budget", budget.BudgetSpec, budget.COLUMNS),
    Kind(
        "Connection",
        "connections",
        "connection",
        connection.ConnectionSpec,
        connection.COLUMNS,
    ),
    Kind(
        "Endpoint",
        "endpoints",
        "endpoint",
        endpoint.EndpointSpec,
        endpoint.COLUMNS,
        notice="No model is called through endpoints yet: the endpoint is kept and checked.",
    ),
    Kind(
        "Environment",
        "environments",
        "environment",
        environment.EnvironmentSpec,
        environment.COLUMNS,
        notice="No evaluation runs yet: the environment is kept and checked, and its version is fixed.",
    ),
    Kind(
        "EnvironmentImage",
        "environmentimages",
        "environmentimage",
        environmentimage.EnvironmentImageSpec,
        environmentimage.COLUMNS,
    ),
    Kind(
        "Sandbox",
        "sandboxes",
        "sandbox",
        sandbox.SandboxSpec,
        sandbox.COLUMNS,
        ("sb",),
    ),
    Kind("Secret", "secrets", "secret", secret.SecretSpec, secret.COLUMNS),
    Kind(
        "Organization",
        "organizations",
        "organization",
        tenancy.OrganizationSpec,
        tenancy.COLUMNS,
        namespaced=False,
        is_made_here=False,
        longest_name=LONGEST_LABEL,
    ),
    Kind(
        "Project",
        "projects",
        "project",
        tenancy.ProjectSpec,
        tenancy.COLUMNS,
        namespaced=False,
        longest_name=LONGEST_LABEL,
    ),
    Kind("ApiKey", "apikeys", "apikey", api_key.ApiKeySpec, api_key.COLUMNS, namespaced=False),
)
BY_NAME = {kind.name: kind for kind in KINDS}
BY_PLURAL = {kind.plural: kind for kind in KINDS}
