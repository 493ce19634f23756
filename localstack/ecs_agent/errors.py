"""What can go wrong when a sandbox is started."""

from __future__ import annotations


class SandboxStartError(Exception):
    """A sandbox did not start, and nothing of it is left; the message says why."""
