"""How the agent says that it has decided, and what: a file that `make up` waits for."""

from __future__ import annotations

import json
import logging
import os
from dataclasses import dataclass
from pathlib import Path

from localstack.endpoints import write_private
from localstack.paths import State

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Readiness:
    """What the agent with this pid decided.

    Args:
        pid: the agent's.
        refusal: why sandboxes are refused on this machine, and what to do; None: they are not.
    """

    pid: int
    refusal: str | None


def ready_file(state: State) -> Path:
    return state.run / "ecs-agent.ready"


def tell(state: State, refusal: str | None) -> None:
    """Say what this process decided. A disk that is full is logged: sandboxes may run all the same."""
    try:
        write_private(ready_file(state), json.dumps({"pid": os.getpid(), "refusal": refusal}) + "\n")
    except OSError as error:
        _logger.error("%s cannot be written: %s", ready_file(state), error)


def told(state: State, pid: int | None) -> Readiness | None:
    """What the agent with this pid said; None while it has said nothing."""
    try:
        data = json.loads(ready_file(state).read_text())
        found = Readiness(int(data["pid"]), data["refusal"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if found.pid == pid else None
