"""Text that is harmless to look at (FLD-08)."""

# ESC and the C1 introducers drive terminals, NUL breaks stores; only line feed and tab stay as they are.
_CONTROLS = (*range(0x20), 0x7F, *range(0x80, 0xA0))
_VISIBLE = {code: f"\\x{code:02x}" for code in _CONTROLS if chr(code) not in "\n\t"}


def visible(text: str) -> str:
    """Text whose controls other than line feed and tab are shown as `\\xNN`."""
    return text.translate(_VISIBLE)
