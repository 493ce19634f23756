"""The one table of kinds: routes, permissions, discovery, schemas and tables of columns all come from it."""

from dataclasses import dataclass

from nodus_core.resources import agent, agentrun, budget, secret
from nodus_core.resources.columns import Column
from nodus_core.resources.fields import Spec

GROUP = "nodus.dev"
VERSION = "v1"
API_VERSION = f"{GROUP}/{VERSION}"


@dataclass(frozen=True)
class Kind:
    """One kind of `nodus.dev/v1`.

    `plural` is its word in paths and permissions. `namespaced`: its objects belong to a project, the others to an
    organization. `notice` is what an object says in its status while nothing acts on it yet; `phase` is then the
    one that it shows, for a kind that has phases.
    """

    name: str
    plural: str
    singular: str
    spec: type[Spec]
    columns: tuple[Column, ...]
    short_names: tuple[str, ...] = ()
    namespaced: bool = True
    notice: str | None = None
    phase: str | None = None

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
    Kind("Budget", "budgets", "budget", budget.BudgetSpec, budget.COLUMNS),
    Kind("Secret", "secrets", "secret", secret.SecretSpec, secret.COLUMNS),
)
BY_NAME = {kind.name: kind for kind in KINDS}
BY_PLURAL = {kind.plural: kind for kind in KINDS}
