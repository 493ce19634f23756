"""Permission words: `<plural>:read`, `<plural>:write`, and `*` for all (NODQ-96)."""

EVERYTHING = "*"
PLURALS = (
    "agents",
    "agentruns",
    "agentgroups",
    "budgets",
    "endpoints",
    "environments",
    "sandboxes",
    "secrets",
)
VERBS = ("read", "write")

AGENTS_READ = "agents:read"
AGENTRUNS_READ = "agentruns:read"
AGENTRUNS_WRITE = "agentruns:write"


def is_permission(word: str) -> bool:
    """Whether a key can be given this word."""
    plural, _, verb = word.partition(":")
    return word == EVERYTHING or (plural in PLURALS and verb in VERBS)


def allows(permissions: tuple[str, ...], needed: str) -> bool:
    return EVERYTHING in permissions or needed in permissions
