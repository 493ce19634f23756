"""What the agent is told by its command line and its environment."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from localstack.ecs_agent.user_namespaces import MAX_SLOTS
from localstack.paths import ROOT, State

DEFAULT_SANDBOXES = 16


@dataclass(frozen=True)
class Settings:
    """The agent's settings.

    Args:
        state: the local cloud's folder.
        cluster: name or ARN; None: the output ClusterName in `cloud.json`.
        max_sandboxes: more tasks wait until one ends.
        poll_s: seconds between two looks at the cluster.
        grace_s: seconds between the polite signal and force; with the poll it stays below 3 (FLD-09).
        daemon: the daemon's package.
        environment: variables of the agent itself.
    """

    state: State
    cluster: str | None
    max_sandboxes: int
    poll_s: float
    grace_s: float
    daemon: Path
    environment: Mapping[str, str]

    @classmethod
    def parse(cls, words: Sequence[str], environment: Mapping[str, str]) -> Settings:
        """Read the command line; exits with a message when it is wrong."""
        parser = argparse.ArgumentParser(prog="python -m localstack.ecs_agent", description=__doc__)
        parser.add_argument("--cluster", help="name of the cluster (default: ClusterName in cloud.json)")
        parser.add_argument(
            "--max-sandboxes",
            type=_slots,
            default=_slots(environment.get("NODUS_MAX_SANDBOXES") or str(DEFAULT_SANDBOXES)),
            help=f"sandboxes at once (default: NODUS_MAX_SANDBOXES, else {DEFAULT_SANDBOXES})",
        )
        parser.add_argument(
            "--poll-s", type=float, default=0.075, help="seconds between looks (default: 0.075)"
        )
        parser.add_argument("--grace-s", type=float, default=2.0, help="seconds before force (default: 2)")
        parser.add_argument(
            "--daemon",
            type=Path,
            default=ROOT / "sandbox_images" / "sandboxd",
            help="package of the daemon (default: sandbox_images/sandboxd)",
        )
        given = parser.parse_args(words)
        return cls(
            state=State.current(),
            cluster=given.cluster or environment.get("NODUS_CLUSTER") or None,
            max_sandboxes=given.max_sandboxes,
            poll_s=given.poll_s,
            grace_s=given.grace_s,
            daemon=given.daemon.resolve(),
            environment=environment,
        )


def _slots(text: str) -> int:
    number = int(text) if text.isdigit() else 0
    if not 1 <= number <= MAX_SLOTS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 1 to {MAX_SLOTS}")
    return number
