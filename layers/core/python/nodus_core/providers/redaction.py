"""A key taken out of what a provider says, by its value (FLD-14): plain, JSON-escaped or URL-encoded, mixed or not."""

import re
from functools import lru_cache

SHORTEST = 8
"""Characters below which a value is left where it is: it would be found in innocent texts, too."""

INSTEAD = "(key)"


def redact(text: str, key: str) -> str:
    """The text without the key."""
    return text if len(key) < SHORTEST else _pattern(key).sub(INSTEAD, text)


def redact_bytes(body: bytes, key: str) -> bytes:
    """The bytes without the key, which is ASCII; what is no UTF-8 stays as it is."""
    if len(key) < SHORTEST:
        return body
    # Latin-1 gives each byte a character of its own, and back.
    return _pattern(key).sub(INSTEAD, body.decode("latin-1")).encode("latin-1")


@lru_cache(maxsize=16)
def _pattern(key: str) -> re.Pattern[str]:
    return re.compile("".join(map(_spellings, key)))


def _spellings(char: str) -> str:
    """Every way in which JSON and URLs write one ASCII character."""
    code = f"{ord(char):02x}"
    hex_digits = "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in code)
    return rf"(?:\\?{re.escape(char)}|\\u00{hex_digits}|%{hex_digits})"
