"""Commands on their way to a sandbox: their frames, and what they take of an answer of Lambda (docs/protocols.md §2)."""

import json
from typing import Any

from nodus_core.kernel.sandboxes import Ask, Command

MOST_PULLED_BYTES = 4 * 1024 * 1024
"""Bytes that the commands of one pull take in the answer of Lambda, which has at most 6 MB."""

MOST_REQUEST_BYTES = 1024 * 1024
"""Bytes that the request of one call of a model takes in it."""

_ENVELOPE_BYTES = 1024
"""Bytes for id, digest and kind of a frame, and to spare."""


def command_frame(command: Command, request: Any) -> dict[str, Any]:
    """A command as the daemon takes it; `request` is its parsed JSON."""
    return {"id": command.id, "digest": command.digest, "kind": command.kind, "request": request}


def ask_frame(ask: Ask) -> dict[str, Any]:
    """An ask as the daemon takes it."""
    return {"id": ask.id, "key": ask.key, "kind": ask.kind, "request": json.loads(ask.request)}


def answer_size(request: str) -> int:
    """Bytes that a command takes in Lambda's answer: its JSON is a string within ASCII JSON there.

    One character may take twelve of them, so the bytes of the text say little.
    """
    return len(json.dumps(request)) + _ENVELOPE_BYTES
