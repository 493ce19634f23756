"""The kinds of `nodus.dev/v1` that this client knows; a test compares them with the server's."""

from __future__ import annotations

from typing import NamedTuple

API_VERSION = "nodus.dev/v1"
_ENDS = frozenset({"Succeeded", "Failed", "Cancelled"})


class Kind(NamedTuple):
    """A kind: ``name`` as in a manifest, ``word`` as in ``word/NAME``, and the other words that mean it."""

    name: str
    word: str
    plural: str
    short: str | None = None
    finished: frozenset[str] = frozenset()
    """Phases that an object of this kind never leaves."""
    namespaced: bool = True
    """Whether its objects belong to a project; the others belong to the organization."""
    costly: bool = False
    """Whether an object does paid work by being there: one that was deleted is not to be made again unasked."""
    shows_once: bool = False
    """Whether only the answer that makes an object shows all of it: the same call again would not bring that back."""

    @property
    def words(self) -> tuple[str, ...]:
        """Every word for it but its name."""
        return (self.word, self.plural, *([self.short] if self.short else []))


AGENT = Kind("Agent", "agent", "agents")
AGENT_RUN = Kind("AgentRun", "agentrun", "agentruns", "ar", _ENDS, costly=True)
AGENT_GROUP = Kind("AgentGroup", "agentgroup", "agentgroups", "ag", _ENDS, costly=True)
SANDBOX = Kind("Sandbox", "sandbox", "sandboxes", "sb", frozenset({"Deleted"}), costly=True)
BUDGET = Kind("Budget", "budget", "budgets")
SECRET = Kind("Secret", "secret", "secrets")
ENVIRONMENT = Kind("Environment", "environment", "environments")
ENVIRONMENT_IMAGE = Kind(
    "EnvironmentImage", "environmentimage", "environmentimages", finished=frozenset({"Completed", "Failed"})
)
ENDPOINT = Kind("Endpoint", "endpoint", "endpoints", costly=True)
CONNECTION = Kind("Connection", "connection", "connections")
ORGANIZATION = Kind("Organization", "organization", "organizations", namespaced=False)
PROJECT = Kind("Project", "project", "projects", namespaced=False)
API_KEY = Kind("ApiKey", "apikey", "apikeys", namespaced=False, shows_once=True)

KINDS = (
    AGENT,
    AGENT_RUN,
    AGENT_GROUP,
    SANDBOX,
    BUDGET,
    SECRET,
    ENVIRONMENT,
    ENVIRONMENT_IMAGE,
    ENDPOINT,
    CONNECTION,
    ORGANIZATION,
    PROJECT,
    API_KEY,
)
_BY_WORD = {word: kind for kind in KINDS for word in (kind.name.lower(), *kind.words)}


def find(word: str) -> Kind | None:
    """The kind that a word means (its name, singular, plural or short name, in any case), or ``None``."""
    return _BY_WORD.get(word.lower())
