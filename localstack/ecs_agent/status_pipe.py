"""Bubblewrap's report about itself (`--json-status-fd`)."""

from __future__ import annotations

import json
import os
import selectors
import time

from localstack.ecs_agent.errors import SandboxStartError

FIRST_PID_S = 10.0


class StatusPipe:
    """The reading end, and until the start the writing end, of the report's pipe."""

    def __init__(self) -> None:
        self._reader, self.writer = os.pipe()
        self._text = b""

    def first_pid(self) -> int:
        """Wait for the host's pid of the sandbox's first process; closes the writing end here.

        Raises:
            SandboxStartError: bubblewrap ended, or said nothing in 10 s.
        """
        os.close(self.writer)
        self.writer = -1
        deadline = time.monotonic() + FIRST_PID_S
        with selectors.DefaultSelector() as selector:
            selector.register(self._reader, selectors.EVENT_READ)
            while b"\n" not in self._text:
                if not selector.select(deadline - time.monotonic()):
                    raise SandboxStartError(f"bubblewrap did not start a process in {FIRST_PID_S:.0f} s")
                piece = os.read(self._reader, 4096)
                if not piece:
                    raise SandboxStartError("bubblewrap ended before the sandbox began")
                self._text += piece
        return int(json.loads(self._text.partition(b"\n")[0])["child-pid"])

    def close(self) -> None:
        """Close what is open."""
        for descriptor in (self._reader, self.writer):
            if descriptor >= 0:
                os.close(descriptor)
        self._reader = self.writer = -1
