"""`python -m localstack.ecs_agent`: see README.md."""

from __future__ import annotations

import fcntl
import logging
import os
import signal
import sys
import threading
from pathlib import Path
from typing import TextIO

import boto3

from localstack.ecs_agent.agent import Agent
from localstack.ecs_agent.means import means_of
from localstack.ecs_agent.orphans import end_orphans
from localstack.ecs_agent.runtime import RuntimeFolderError
from localstack.ecs_agent.settings import Settings
from localstack.ecs_agent.tasks import Cluster
from localstack.endpoints import Cloud, NoCloudError

_logger = logging.getLogger("localstack.ecs_agent")
_CLOUD_POLL_S = 0.5


def main() -> int:
    """Run until SIGTERM or SIGINT; answers the exit code."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO, stream=sys.stderr)
    settings = Settings.parse(sys.argv[1:], os.environ)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    settings.state.sandboxes.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = _lock(settings.state.sandboxes)
    if lock is None:
        _logger.error("another agent works in %s", settings.state.sandboxes)
        return 1
    with lock:
        try:
            means = means_of(settings)
        except (RuntimeFolderError, OSError, ValueError) as error:
            _logger.error("%s", error)
            return 1
        cluster = _await_cluster(settings, stop)
        if cluster is None:
            return 0
        end_orphans(settings.state.sandboxes, means.launcher.groups, cluster, stop)
        agent = Agent(cluster, means, max_sandboxes=settings.max_sandboxes, grace_s=settings.grace_s)
        _logger.info("ready: cluster=%s slots=%d", cluster.name, settings.max_sandboxes)
        agent.run(stop, settings.poll_s)
        means.launcher.groups.discard()
    _logger.info("stopped")
    return 0


def _lock(folder: Path) -> TextIO | None:
    """Held as long as this process lives: two agents would start each task twice."""
    file = (folder / ".lock").open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


def _await_cluster(settings: Settings, stop: threading.Event) -> Cluster | None:
    """The cluster, as soon as the cloud is deployed; None when told to stop before."""
    said = False
    while not stop.is_set():
        try:
            cloud = Cloud.load(settings.state)
            name = settings.cluster or cloud.output("ClusterName")
        except NoCloudError as error:
            if not said:
                _logger.info("waiting for the cloud: %s", error)
            said = True
            stop.wait(_CLOUD_POLL_S)
            continue
        client = boto3.client("ecs", **cloud.client_arguments())
        return Cluster(client, name)
    return None


if __name__ == "__main__":
    raise SystemExit(main())
