"""What an earlier life of the agent left behind.

Its sandboxes are dead or dying: each ends with the agent by its life line. Here that is made sure of, their tasks
are stopped, so that whoever started them learns it, and their folders and control groups are removed.
"""

from __future__ import annotations

import logging
import shutil
import threading
import time
from pathlib import Path

from localstack.ecs_agent.cgroups import ControlGroups
from localstack.ecs_agent.sandbox_folder import Record, RecordError, SandboxFolder, existing
from localstack.ecs_agent.tasks import CloudUnreachableError, Cluster

_logger = logging.getLogger(__name__)
_RETRY_S = 0.5
_END_S = 5.0


def end_orphans(folder: Path, groups: ControlGroups, cluster: Cluster, stop: threading.Event) -> None:
    """End them all, before the first sandbox of this life is started.

    A record whose task was never stopped is kept until ECS has taken the StopTask: waits for the cloud as long
    as it is away. What cannot be read or removed is logged and left: a task whose folder is still there is
    never started again, and one sandbox of an earlier life must not keep those of this one from starting.

    Args:
        folder: of all sandboxes.
        groups: where their control groups are.
        cluster: of their tasks.
        stop: gives up waiting for the cloud.
    """
    found: list[tuple[SandboxFolder, Record | None]] = []
    for sandbox in existing(folder):
        try:
            found.append((sandbox, sandbox.read_record()))
        except RecordError as error:
            _logger.error("sandbox %s of an earlier life is left as it is: %s", sandbox.path.name, error)
    for sandbox, record in found:
        _end(sandbox, record)
    for group in groups.leftovers():
        try:
            group.remove()
        except OSError as error:
            _logger.error("a control group of an earlier life cannot be removed: %s", error)
    for sandbox, record in found:
        if record is None or _stop_task(sandbox, record, cluster, stop):
            _remove(sandbox)
    for probe in folder.glob(".probe-*"):
        shutil.rmtree(probe, ignore_errors=True)


def _end(sandbox: SandboxFolder, record: Record | None) -> None:
    deadline = time.monotonic() + _END_S
    while record is not None and record.end():
        if time.monotonic() > deadline:
            _logger.error(
                "sandbox %s of an earlier life does not end: %s", sandbox.path.name, record.processes
            )
            return
        time.sleep(0.01)


def _stop_task(sandbox: SandboxFolder, record: Record, cluster: Cluster, stop: threading.Event) -> bool:
    """Whether ECS has taken the StopTask."""
    while True:
        try:
            cluster.stop(record.task, "NodusAgentRestarted: the sandbox ended with the agent that ran it")
        except CloudUnreachableError as error:
            _logger.warning("sandbox %s of an earlier life: %s", sandbox.path.name, error)
            if stop.wait(_RETRY_S):
                return False
        else:
            return True


def _remove(sandbox: SandboxFolder) -> None:
    try:
        sandbox.remove()
    except OSError as error:
        _logger.error("sandbox %s of an earlier life: its folder stays: %s", sandbox.path.name, error)
    else:
        _logger.info("sandbox %s ended: it was started by an earlier agent", sandbox.path.name)
