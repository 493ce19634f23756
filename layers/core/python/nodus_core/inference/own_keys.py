"""Calls with the user's own key (NOD-109 … NOD-126): where they go, and which field of a Secret is the key."""

from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

from nodus_core.inference.target import OwnKey, Target, Wire
from nodus_core.resources.addresses import why_not_public

PUBLIC_URLS: dict[Wire, str] = {
    "anthropic": "https://api.anthropic.com",
    "openai": "https://api.openai.com/v1",
}
KEY_FIELDS: dict[Wire, str] = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}
WIRES: Mapping[str, Wire] = {"Anthropic": "anthropic", "OpenAI": "openai"}
"""`spec.model.protocol` to wire (NODQ-27)."""


class UnusableKey(Exception):
    """A Secret cannot give the key of a call. The message names the Secret and the field, never a value."""


def own_target(name: str, wire: Wire, own_key: OwnKey) -> Target:
    """The target of a model at the user's provider. Its prices are nobody's business here (NOD-121)."""
    host = urlsplit(own_key.base_url or PUBLIC_URLS[wire]).hostname or "the provider"
    # OpenAI's own models refuse the older name, and most compatible providers know no other.
    limit = "max_tokens" if own_key.base_url else "max_completion_tokens"
    return Target(wire, name, name, host, name, limit_field=limit, own_key=own_key)


def key_field(secret: str, fields: Collection[str], wire: Wire, wanted: str | None) -> str:
    """The field of a Secret that holds the key (NOD-111, NOD-112). Raises `UnusableKey` when none does."""
    if wanted is not None:
        if wanted in fields:
            return wanted
        raise UnusableKey(f"Secret {secret!r} has no field {wanted!r}; it has {', '.join(sorted(fields))}")
    if len(fields) == 1:
        return next(iter(fields))
    usual = KEY_FIELDS[wire]
    if usual in fields:
        return usual
    raise UnusableKey(
        f"Secret {secret!r} has the fields {', '.join(sorted(fields))} and no {usual}: "
        "say by apiKeyField which one is the key"
    )


def usable_key(secret: str, field: str, value: str) -> str:
    """The key as it goes into a header, without white space around it. Raises `UnusableKey`."""
    key = value.strip()
    if key and key.isascii() and key.isprintable() and " " not in key:
        return key
    raise UnusableKey(
        f"field {field} of Secret {secret!r} is no key: it must be one word of ASCII characters, "
        "without line breaks or spaces in it"
    )


def check_address(own_key: OwnKey) -> None:
    """Raises `UnusableKey` for a base address that no release accepts any more (FLD-13)."""
    why = why_not_public(own_key.base_url) if own_key.base_url else None
    if why:
        raise UnusableKey(f"spec.model.baseURL {why}")
