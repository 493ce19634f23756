"""Whoever uses the deployed cloud: runs through the CLI and through the SDK, on the clock."""

from __future__ import annotations

import os
import subprocess
import time
import uuid
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import nodus
import yaml
from nodus.errors import NodusError, NotFoundError

from localstack.paths import APP_BIN, ROOT
from localstack.testing import TestCloud
from tests.bench.cloud import BenchError

HELLO = ROOT / "examples" / "hello" / "agent.yaml"
HELLO_AGENT = "hello-agent"
HELLO_PROMPT = "Use the shell to print the Python version"
AGENT = "bench"
FINAL = ("Succeeded", "Failed", "Cancelled")
PATIENCE_S = 900.0
"""For the end of all runs that were made at once, and for the end of one that was deleted."""
FIRST_INTERVAL_S, LAST_INTERVAL_S = 0.02, 0.25
"""Between two looks for a first step: each look is work for the very processors that are to bring it forth."""


class Person:
    """Calls by the key of the cloud's client configuration; what is made is deleted by `leave`."""

    def __init__(self, cloud: TestCloud) -> None:
        context = yaml.safe_load(cloud.configuration.read_text())["contexts"]["local"]
        self._cloud = cloud
        self.client = nodus.Client(
            server=context["server"], token=context["token"], org=context["org"], project=context["project"]
        )
        self._made: list[str] = []

    def prepare(self) -> None:
        """Makes the two agents: hello's, and one without setup, whose system prompt is short."""
        self.cli("apply", "-f", str(HELLO))
        spec = {"model": {"access": "Nodus"}, "system": "You are careful.", "perRunMaxCostUSD": "1.00"}
        self.client.agents.apply({"metadata": {"name": AGENT}, "spec": spec})

    def cli(self, *words: str) -> str:
        """What a command of the installed CLI prints. Raises BenchError when it fails."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("NODUS_")}
        done = subprocess.run(
            [str(APP_BIN / "nodus"), *words],
            env={**inherited, "NODUS_CONFIG": str(self._cloud.configuration)},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise BenchError(f"`nodus {' '.join(words)}` failed: {done.stderr or done.stdout}")
        return done.stdout

    def new_run(self) -> str:
        name = f"bench-{uuid.uuid4().hex[:10]}"
        self._made.append(name)
        return name

    def adopt(self, name: str) -> None:
        """Takes a run that was made otherwise for one's own."""
        self._made.append(name)

    def start(self, agent: str, prompt: str, name: str | None = None) -> str:
        """Creates a run; returns its name."""
        name = name or self.new_run()
        self.client.agentruns.create(name, {"agent": agent, "input": prompt})
        return name

    def ended(self, names: Sequence[str], each_look: Callable[[], None] = lambda: None) -> dict[str, Any]:
        """The runs, as the API shows them, once all have ended well. Raises BenchError."""
        deadline, wanted = time.monotonic() + PATIENCE_S, set(names)
        while True:
            each_look()
            runs = {run["metadata"]["name"]: run for run in self.client.agentruns.list()}
            over = {name for name in wanted if runs[name]["status"]["phase"] in FINAL}
            bad = [name for name in over if runs[name]["status"]["phase"] != "Succeeded"]
            if bad:
                raise BenchError(f"run {bad[0]} did not succeed: {dict(runs[bad[0]]['status'])}")
            if over == wanted:
                return {name: runs[name] for name in names}
            if time.monotonic() > deadline:
                raise BenchError(
                    f"{len(wanted - over)} of {len(wanted)} runs have not ended: {wanted - over}"
                )
            time.sleep(0.1)

    def steps(self, name: str) -> list[Any]:
        return list(self.client.agentruns.steps(name))

    def first_step(self, name: str) -> float:
        """Waits until the run shows a step; returns the reading of the monotonic clock."""
        interval = FIRST_INTERVAL_S
        while not self.steps(name):
            time.sleep(interval)
            interval = min(interval * 1.3, LAST_INTERVAL_S)
        return time.monotonic()

    def gone(self, name: str) -> None:
        """Deletes a run and waits until it is away, its sandbox too."""
        self.client.agentruns.delete(name)
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            try:
                self.client.agentruns.get(name)
            except NotFoundError:
                self._made.remove(name)
                return
            time.sleep(0.1)
        raise BenchError(f"run {name} was deleted and is still there")

    def leave(self) -> None:
        """Deletes what is left of this person's runs, whatever they do."""
        for name in self._made:
            try:
                self.client.agentruns.delete(name)
            except NodusError:  # it was never created, or the cloud is gone
                continue
        self._made.clear()


def instant(text: str) -> float:
    """A shown moment in seconds since the epoch."""
    return datetime.fromisoformat(text).timestamp()
