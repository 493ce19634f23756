"""Hands on the machine under the cloud: what each kind of fault does."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from localstack import daemons
from localstack.faults import control
from localstack.processes import kill_marked, signal_quietly
from localstack.testing import TestCloud
from tests.crash.campaign.journal import CloudJournal
from tests.crash.campaign.ledger import Fault
from tests.crash.campaign.resuming import Resuming
from tests.integration.runs.machine import Room, room, workers

LEASE_S = 30.0
SLEEP_S = (LEASE_S + 3.0, LEASE_S + 15.0)
"""How long a worker of a line is stopped: its lease passes."""

NAP_S = (3.0, 15.0)
"""How long other workers are stopped."""

STORM_S = (2.0, 12.0)
"""How long a service of AWS refuses everything: longer than some callers are patient."""

FUNCTIONS = ("line", "api", "link", "reactor", "sweeper")

Done = tuple[str, frozenset[str]]
"""What was done, in words, and the sandboxes that went away by it."""

NOTHING: frozenset[str] = frozenset()


class Machine:
    """Does one fault after another to a cloud.

    Args:
        rates: what goes wrong by itself all the time (`localstack.faults.control`).
    """

    def __init__(self, cloud: TestCloud, seed: int, rates: dict[str, float], resuming: Resuming) -> None:
        self._cloud = cloud
        self._journal = CloudJournal(cloud)
        self._dice = random.Random(seed)
        self._rates = rates
        self._resuming = resuming
        self._stopped: dict[int, threading.Timer] = {}
        self.kinds: dict[str, tuple[int, Callable[[], Done | None]]] = {
            "worker killed": (30, self._kill_worker),
            "idle worker killed": (6, self._kill_any_worker),
            "worker stopped": (8, self._stop_worker),
            "link cut": (10, self._cut_link),
            "execution stopped": (12, self._stop_execution),
            "service in a storm": (8, self._storm),
            "sandbox killed": (6, self._kill_sandbox),
            "agent restarted": (3, self._restart_agent),
            "models restarted": (3, self._restart_models),
        }
        """Each kind: how often it comes among the others, and what it does; None: there was nothing to do it to."""

    def next(self, number: int) -> Fault | None:
        """One fault of a random kind; None when there is nothing that it could be done to."""
        names = sorted(self.kinds)
        name = self._dice.choices(names, [self.kinds[each][0] for each in names])[0]
        at = time.time()
        try:
            done = self.kinds[name][1]()
        except (OSError, BotoCoreError, ClientError):
            return None  # what it was meant for has ended meanwhile
        return Fault(number, name, at, *done) if done else None

    def take_cloud(self, number: int) -> Fault:
        """The whole cloud goes away, killed or politely stopped, sandboxes included; then it is started again."""
        at, gone = time.time(), self._sandboxes()
        self._resuming.interrupted_all(at)
        self.wake()
        kind, how = self._dice.choice((("cloud killed", self._kill_all), ("cloud stopped", self._stop_all)))
        with ThreadPoolExecutor(1) as pool:
            ending = pool.submit(how)
            while not ending.done():
                gone |= self._sandboxes()  # also one that has only just begun
                time.sleep(0.1)
        about = ending.result()
        gone |= self._sandboxes()
        self._cloud.run("up")  # as a person would: what is due is looked at at once
        self.weather(self._rates)
        return Fault(number, kind, at, f"{about}; back after {time.time() - at:.0f} s", gone)

    def _kill_all(self) -> str:
        """SIGKILL of every process of the cloud."""
        return f"{kill_marked(self._cloud.state.folder)} processes"

    def _stop_all(self) -> str:
        """`make down`, as a person would."""
        self._cloud.run("down")
        return "make down"

    def start(self) -> None:
        """Start what does not run, and let things go wrong again."""
        self._cloud.run("up", "--no-deploy")
        self.weather(self._rates)

    def weather(self, rates: dict[str, float]) -> None:
        """How often things go wrong by themselves from now on."""
        control.tell(self._cloud.state, do="weather", seed=self._dice.randrange(2**32), rates=rates)

    def wake(self) -> None:
        """Nothing stays stopped."""
        for pid, timer in list(self._stopped.items()):
            timer.cancel()
            self._continue(pid)

    # --- workers ---

    def _kill_worker(self) -> Done | None:
        busy = self._busy()
        if busy is None:
            return None
        if busy["function"].endswith("-line"):
            self._resuming.interrupted(busy["about"])
        signal_quietly(os.kill, busy["pid"], signal.SIGKILL)
        return f"{busy['function']} at {busy['about']}, pid {busy['pid']}", NOTHING

    def _kill_any_worker(self) -> Done | None:
        function = self._dice.choice(FUNCTIONS)
        found = sorted(workers(self._cloud, function))
        if not found:
            return None
        pid = self._dice.choice(found)
        signal_quietly(os.kill, pid, signal.SIGKILL)
        return f"{function}, pid {pid}", NOTHING

    def _stop_worker(self) -> Done | None:
        busy = self._busy()
        if busy is None:
            return None
        of_line = busy["function"].endswith("-line")
        seconds = self._dice.uniform(*(SLEEP_S if of_line else NAP_S))
        if of_line:
            self._resuming.interrupted(busy["about"])
        self._stop(busy["pid"], seconds)
        return f"{busy['function']} at {busy['about']}, pid {busy['pid']}, {seconds:.0f} s", NOTHING

    def _stop(self, pid: int, seconds: float) -> None:
        signal_quietly(os.kill, pid, signal.SIGSTOP)
        self._stopped[pid] = threading.Timer(seconds, self._continue, (pid,))
        self._stopped[pid].daemon = True
        self._stopped[pid].start()

    def _continue(self, pid: int) -> None:
        self._stopped.pop(pid, None)
        signal_quietly(os.kill, pid, signal.SIGCONT)

    def _busy(self) -> dict[str, Any] | None:
        """A worker that serves a call: each function's turn comes as often, but a line's twice as often."""
        found: list[dict[str, Any]] = [
            each for each in control.tell(self._cloud.state, do="busy") if each["pid"] not in self._stopped
        ]
        by_function: dict[str, list[dict[str, Any]]] = {}
        for each in found:
            by_function.setdefault(each["function"], []).append(each)
        names = sorted(by_function)
        if not names:
            return None
        weights = [4 if name.endswith("-line") else 1 for name in names]
        return self._dice.choice(by_function[self._dice.choices(names, weights)[0]])

    # --- executions, links, services ---

    def _stop_execution(self) -> Done | None:
        cloud = self._cloud.cloud
        states = boto3.client("stepfunctions", **cloud.client_arguments())
        machine = cloud.output("LineMachineArn")
        running = states.list_executions(stateMachineArn=machine, statusFilter="RUNNING")["executions"]
        if not running:
            return None
        chosen = self._dice.choice(sorted(running, key=lambda each: each["name"]))
        states.stop_execution(executionArn=chosen["executionArn"], cause="an operator's mistake")
        return chosen["name"], NOTHING

    def _cut_link(self) -> Done | None:
        sandbox = self._any_sandbox()
        row = self._journal.row(f"sb#{sandbox}", "head") if sandbox else {}
        if "connection" not in row:
            return None
        cloud = self._cloud.cloud
        address = (
            f"{cloud.endpoint}/_aws/execute-api/{cloud.output('LinkApiId')}/{cloud.output('LinkApiStage')}"
        )
        arguments = {**cloud.client_arguments(), "endpoint_url": address}
        boto3.client("apigatewaymanagementapi", **arguments).delete_connection(ConnectionId=row["connection"])
        return str(sandbox), NOTHING

    def _storm(self) -> Done:
        name, seconds = self._dice.choice(("dynamodb", "s3", "states")), self._dice.uniform(*STORM_S)
        control.tell(self._cloud.state, do="storm", name=name, seconds=seconds)
        return f"{name} for {seconds:.0f} s", NOTHING

    # --- sandboxes and the processes beside the cloud ---

    def _kill_sandbox(self) -> Done | None:
        sandbox = self._any_sandbox()
        own = room(self._cloud, sandbox) if sandbox else None
        if own is None or not own.processes():
            return None
        own.kill()
        return str(sandbox), frozenset({str(sandbox)})

    def _restart_agent(self) -> Done:
        gone = self._sandboxes()
        self._kill_daemon(daemons.AGENT)
        # A sandbox whose start it was just beginning is lost, too.
        gone |= self._sandboxes()
        self.start()
        return f"{len(gone)} sandboxes", gone

    def _restart_models(self) -> Done:
        self._kill_daemon(daemons.SCRIPTED)
        self.start()
        return "the scripted model server", NOTHING

    def _kill_daemon(self, name: str) -> None:
        """As `kill -9` would; it may still be ending when the next command comes."""
        signal_quietly(os.kill, self._cloud.cloud.pids[name], signal.SIGKILL)

    def _sandboxes(self) -> frozenset[str]:
        return frozenset(
            folder.name for folder in self._cloud.state.sandboxes.glob("*") if _is_sandbox(folder)
        )

    def _any_sandbox(self) -> str | None:
        found = sorted(self._sandboxes())
        return self._dice.choice(found) if found else None


def _is_sandbox(folder: Any) -> bool:
    return bool(Room(folder).folder.joinpath("sandbox.json").exists())
