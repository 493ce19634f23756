"""The agent's loop: what the cluster's tasks say is compared with what runs, and the difference is acted on.

Level-triggered: nothing is remembered of a task but whether it was started here, so a look that is late, lost or
made twice changes nothing. A task is started at most once: its record is on disk before anything runs.
"""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from localstack.ecs_agent.dial import link_addresses
from localstack.ecs_agent.egress import ALLOW_LIST, Egress
from localstack.ecs_agent.errors import SandboxStartError
from localstack.ecs_agent.isolation import Refusal
from localstack.ecs_agent.launcher import WORKSPACE_VARIABLE, Order
from localstack.ecs_agent.limits import Limits
from localstack.ecs_agent.means import Means
from localstack.ecs_agent.mounts import WORKSPACE, can_hold_workspace
from localstack.ecs_agent.refusals import tell_refused
from localstack.ecs_agent.sandbox import Sandbox, SandboxEndError
from localstack.ecs_agent.tasks import CloudUnreachableError, Cluster, Task

_logger = logging.getLogger(__name__)

# Polling must stay cheap: never more than this part of the time is spent asking.
_BUSY_SHARE = 0.2
_LONGEST_PAUSE_S = 2.0


@dataclass
class _Running:
    """A sandbox, its task, and how far its end has come."""

    sandbox: Sandbox
    started: float
    force_at: float | None = None
    task_is_known: bool = True


class Agent:
    """Runs the tasks of one cluster as sandboxes.

    All its methods are for one thread: bubblewrap ends with the thread that started it.
    """

    def __init__(
        self,
        cluster: Cluster,
        means: Means,
        *,
        max_sandboxes: int,
        grace_s: float,
    ) -> None:
        """Take what it works with; nothing is started.

        Args:
            cluster: whose tasks.
            means: what starts sandboxes, and how isolated they are here.
            max_sandboxes: slots.
            grace_s: between the polite signal and force.
        """
        self._cluster = cluster
        self._means = means
        self._grace_s = grace_s
        self._running: dict[str, _Running] = {}
        self._settled: set[str] = set()  # tasks that are no sandboxes, were refused, or have ended here
        self._to_stop: dict[str, str] = {}  # tasks whose StopTask has not been taken yet -> reason
        self._slots = list(reversed(range(max_sandboxes)))
        self._full = False
        # Removing a folder of 10,000 files, or telling a link that is slow, must not delay a start.
        self._aside = ThreadPoolExecutor(2, thread_name_prefix="aside")

    def run(self, stop: threading.Event, poll_s: float) -> None:
        """Look again and again until `stop`, then end every sandbox and stop its task.

        Args:
            stop: set by a signal.
            poll_s: seconds between looks; longer when the cloud is slow or away.
        """
        pause = poll_s
        reachable = True
        while not stop.wait(pause):
            began = time.monotonic()
            try:
                self.look()
            except CloudUnreachableError as error:
                if reachable:
                    _logger.warning("the cloud does not answer, sandboxes run on: %s", error)
                pause, reachable = min(pause * 2, _LONGEST_PAUSE_S), False
                continue
            if not reachable:
                _logger.info("the cloud answers again")
            reachable = True
            pause = max(poll_s, (time.monotonic() - began) * (1 / _BUSY_SHARE - 1))
            pause = min(pause, _LONGEST_PAUSE_S)
        self.close()

    def look(self) -> None:
        """Compare once, and act.

        Raises:
            CloudUnreachableError: the cloud does not answer; what runs was still looked after.
        """
        self._look_after_sandboxes()
        self._send_stops()
        wanted = self._cluster.running()
        self._settled &= wanted  # a task that stopped never runs again: it need not be remembered
        self._end_stopped(wanted)
        self._begin_new(wanted)

    def close(self) -> None:
        """End every sandbox, politely first, and stop their tasks."""
        for arn in self._running:
            self._ask_to_end(arn, "the agent stops")
        while self._running:
            self._look_after_sandboxes()
            time.sleep(0.02)
        self._aside.shutdown()
        try:
            self._send_stops()
        except CloudUnreachableError as error:
            _logger.warning("%d tasks could not be stopped: %s", len(self._to_stop), error)

    def _begin_new(self, wanted: set[str]) -> None:
        new = wanted - self._running.keys() - self._settled - self._to_stop.keys()
        if not new:
            self._full = False
            return
        tasks = self._cluster.describe(sorted(new))
        if any(task.sandbox_id is not None for task in tasks):
            self._means.decide_again_if_refused()
        for task in tasks:
            if task.sandbox_id is None or task.stopped:
                self._settled.add(task.arn)
            elif (refusal := self._refusal(task)) is not None:
                self._refuse(task, refusal)
            elif self._slots:
                self._start(task)
            elif not self._full:
                self._full = True
                _logger.warning("all slots are taken: sandbox %s and later ones wait", task.sandbox_id)

    def _refusal(self, task: Task) -> Refusal | None:
        isolation = self._means.isolation
        if isinstance(isolation, Refusal):
            return Refusal(str(isolation), isolation.remedy)
        try:
            egress = Egress.of(task.variables)
        except ValueError as error:
            return Refusal(f"its egress policy cannot be kept: {error}", "correct spec.network.egress")
        if egress.policy == ALLOW_LIST and not isolation.mode.isolated:
            return Refusal(
                "without isolation nothing keeps commands to an AllowList",
                "set spec.network.egress.policy to Deny or Open, which such a sandbox shows as not enforced",
            )
        if egress.lets_out and isolation.own_guard:
            return Refusal(
                f"NODUS_SANDBOX_GUARD=seccomp leaves the sandbox without a network, which the guard's proxy needs for "
                f"{egress.policy}",
                "set spec.network.egress.policy to Deny, or start the local cloud with NODUS_SANDBOX_GUARD=network",
            )
        workspace = task.variables.get(WORKSPACE_VARIABLE, WORKSPACE)
        if not can_hold_workspace(workspace):
            return Refusal(
                f"the working folder {workspace} would hide a folder of the system",
                f"set spec.workingDir to a folder of its own, for example {WORKSPACE}",
            )
        return None

    def _refuse(self, task: Task, refusal: Refusal) -> None:
        _logger.error("sandbox %s refused task=%s: %s", task.sandbox_id, task.arn, refusal.reason)
        self._settled.add(task.arn)
        self._to_stop[task.arn] = f"NodusRefused: {refusal.reason}"
        self._aside.submit(tell_refused, task.variables, refusal.reason, refusal.remedy)

    def _start(self, task: Task) -> None:
        isolation = self._means.isolation
        if isinstance(isolation, Refusal) or task.sandbox_id is None:
            raise TypeError("only a sandbox that is not refused is started")
        began = time.monotonic()
        slot = self._slots.pop()
        try:
            order = Order(
                sandbox_id=task.sandbox_id,
                task=task.arn,
                variables=task.variables,
                allowed=link_addresses(
                    task.variables[name]
                    for name in ("NODUS_LINK_HTTP", "NODUS_LINK_WS")
                    if name in task.variables
                ),
                limits=Limits.of_task(task.cpu_units, task.memory_mib),
                egress=Egress.of(task.variables),
            )
            sandbox = self._means.launcher.start(order, isolation, slot)
        except (SandboxStartError, ValueError) as error:
            self._slots.append(slot)
            self._refuse(task, Refusal(str(error), "see the log of the ECS agent (`make logs`)"))
            return
        self._running[task.arn] = _Running(sandbox, began)
        milliseconds = (time.monotonic() - began) * 1000
        _logger.info(
            "sandbox %s started pid=%d mode=%s limits=%s in %.0f ms task=%s",
            *(sandbox.sandbox_id, sandbox.pid, isolation.mode),
            *(",".join(sorted(sandbox.group.enforced)) or "rlimits", milliseconds, task.arn),
        )

    def _end_stopped(self, wanted: set[str]) -> None:
        """End sandboxes whose task was stopped from outside.

        A task that the cloud has forgotten (it lost its state) was not stopped: its sandbox runs on, since
        the link, which has the journal, tells the daemon when it is not wanted any more.
        """
        gone = {arn for arn, running in self._running.items() if running.force_at is None} - wanted
        gone = {arn for arn in gone if self._running[arn].task_is_known}
        if not gone:
            return
        known = {task.arn for task in self._cluster.describe(sorted(gone))}
        for arn in gone & known:
            self._ask_to_end(arn, "its task was stopped")
        for arn in gone - known:
            self._running[arn].task_is_known = False
            _logger.warning(
                "sandbox %s runs on: the cloud has lost its task %s",
                self._running[arn].sandbox.sandbox_id,
                arn,
            )

    def _ask_to_end(self, arn: str, why: str) -> None:
        running = self._running[arn]
        if running.force_at is None:
            running.force_at = time.monotonic() + self._grace_s
            running.sandbox.ask_to_end()
            _logger.debug("sandbox %s is asked to end: %s", running.sandbox.sandbox_id, why)

    def _look_after_sandboxes(self) -> None:
        for arn, running in list(self._running.items()):
            code = running.sandbox.poll()
            if code is not None:
                self._finish(arn, running, code)
            elif running.force_at is not None and time.monotonic() > running.force_at:
                running.sandbox.kill()

    def _finish(self, arn: str, running: _Running, code: int) -> None:
        sandbox = running.sandbox
        del self._running[arn]
        why = "stopped" if running.force_at is not None else f"exit code {code}"
        _logger.info(
            "sandbox %s ended (%s) after %.1f s task=%s",
            sandbox.sandbox_id,
            why,
            time.monotonic() - running.started,
            arn,
        )
        said = sandbox.log_tail()
        if code != 0 and running.force_at is None and said:
            _logger.error("sandbox %s wrote last: %s", sandbox.sandbox_id, said)
        self._settled.add(arn)
        self._to_stop[arn] = f"NodusSandboxEnded: {why}"
        try:
            sandbox.close()
        except (OSError, SandboxEndError) as error:
            # Its slot, and so its users, are not given to another sandbox.
            _logger.error(
                "sandbox %s left something behind, its slot is not used again: %s", sandbox.sandbox_id, error
            )
            return
        self._slots.append(sandbox.slot)
        self._aside.submit(self._remove_folder, sandbox)

    def _remove_folder(self, sandbox: Sandbox) -> None:
        try:
            sandbox.folder.remove()
        except OSError as error:
            _logger.error("sandbox %s: its folder cannot be removed: %s", sandbox.sandbox_id, error)

    def _send_stops(self) -> None:
        for arn, reason in list(self._to_stop.items()):
            self._cluster.stop(arn, reason)
            del self._to_stop[arn]
