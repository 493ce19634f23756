"""Files of a Sandbox, as calls name them (NODQ-67)."""

from collections.abc import Mapping

from nodus_core.kernel.errors import Refusal

LONGEST_PATH = 4096
"""Bytes of a path: what Linux takes."""


def read_path(query: Mapping[str, str], name: str = "path") -> str:
    """A path in a sandbox; a relative one counts from its working folder. Raises `Refusal` `BadRequest`."""
    return checked_path(query.get(name, ""), name)


def checked_path(path: str, name: str) -> str:
    """Any path that Linux takes: what stands there, and what may be done with it, only the sandbox knows."""
    if not path or "\0" in path:
        raise Refusal("BadRequest", f"{name} must be a path in the sandbox: not empty, and without NUL")
    if len(path.encode(errors="replace")) > LONGEST_PATH:
        raise Refusal("BadRequest", f"{name} has more than {LONGEST_PATH} bytes")
    return path
