"""Permission words: `<plural>:read`, `<plural>:write`, and `*` for all (NODQ-96)."""

from nodus_core.resources.kinds import BY_NAME, BY_PLURAL

EVERYTHING = "*"
PLURALS = tuple(BY_PLURAL)
VERBS = ("read", "write")

AGENTS_READ = BY_NAME["Agent"].permission("read")
AGENTRUNS_READ = BY_NAME["AgentRun"].permission("read")
AGENTRUNS_WRITE = BY_NAME["AgentRun"].permission("write")


def is_permission(word: str) -> bool:
    """Whether a key can be given this word."""
    plural, _, verb = word.partition(":")
    return word == EVERYTHING or (plural in PLURALS and verb in VERBS)


def allows(permissions: tuple[str, ...], needed: str) -> bool:
    return EVERYTHING in permissions or needed in permissions
