"""What a key may hold: scopes `<plural>:read` and `<plural>:write` (NODQ-96), roles, and `*` for all.

The one table: a route names the scope that it needs, a key holds words, and a word stands for scopes.
"""

from collections.abc import Iterable

from nodus_core.resources.kinds import BY_NAME, BY_PLURAL, KINDS

EVERYTHING = "*"
VERBS = ("read", "write")
SCOPES = tuple(f"{plural}:{verb}" for plural in BY_PLURAL for verb in VERBS)

_OF_PROJECTS = tuple(kind.plural for kind in KINDS if kind.namespaced)
_VIEWER = frozenset({*(f"{plural}:read" for plural in _OF_PROJECTS), "organizations:read", "projects:read"})
_EDITOR = _VIEWER | {f"{plural}:write" for plural in _OF_PROJECTS if plural != "budgets"}
ROLES: dict[str, frozenset[str]] = {
    "viewer": _VIEWER,
    "editor": _EDITOR,
    "admin": frozenset(SCOPES),
}
"""Names for what belongs together. A viewer reads what projects hold, an editor also writes it (but the Budgets
that limit him), an admin also manages Budgets, projects and keys."""

AGENTS_READ = BY_NAME["Agent"].permission("read")
AGENTRUNS_READ = BY_NAME["AgentRun"].permission("read")
AGENTRUNS_WRITE = BY_NAME["AgentRun"].permission("write")
SANDBOXES_WRITE = BY_NAME["Sandbox"].permission("write")
SECRETS_READ = BY_NAME["Secret"].permission("read")


def is_permission(word: str) -> bool:
    """Whether a key can be given this word."""
    return word == EVERYTHING or word in ROLES or word in SCOPES


def scopes(words: Iterable[str]) -> frozenset[str]:
    """All that these words stand for. `*` stands for more than every scope: also for those to come."""
    held: set[str] = set()
    for word in words:
        held |= {EVERYTHING, *SCOPES} if word == EVERYTHING else ROLES.get(word, {word})
    return frozenset(held)


def allows(words: Iterable[str], needed: str) -> bool:
    """Whether a key that holds these words may do what needs this scope."""
    return any(word in (EVERYTHING, needed) or needed in ROLES.get(word, ()) for word in words)
