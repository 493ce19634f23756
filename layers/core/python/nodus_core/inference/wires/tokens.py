"""Token counts as providers send them."""


def token_count(value: object) -> int | None:
    """The count, None when the value is none: missing, negative, or of another type."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
