"""Token counts as providers send them."""

from typing import Any

from nodus_core.inference.wires.json_text import BadJson, parse


def counts(text: str | None) -> dict[str, Any] | None:
    """The fields of a usage object, None when there is none: what cannot be read was not counted (FLD-01)."""
    try:
        counted = parse(text) if text is not None else None
    except BadJson:
        return None
    return counted if isinstance(counted, dict) else None


def token_count(value: object) -> int | None:
    """The count, None when the value is none: missing, negative, or of another type."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
