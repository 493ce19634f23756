"""Sandboxes of one's own come and go while everything around them is killed at random: nothing is left over (FLD-10).

Nothing of theirs, and in the whole cloud no task without a live row, no running row without a task, no process without
either.

`NODUS_SANDBOX_CYCLES` says how many of them are made, 200 without a word.
"""

import os
import random
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import boto3
import pytest

from localstack import daemons
from localstack.processes import signal_quietly
from localstack.testing import TestCloud
from tests.integration.runs.machine import Room, send, workers
from tests.integration.runs.orphans import orphans
from tests.integration.runs.person import Person, manifest
from tests.integration.waiting import until

CYCLES = int(os.environ.get("NODUS_SANDBOX_CYCLES", "200"))
AT_ONCE = 3
FIVE_MINUTES_S = 300.0
"""No orphan is older than that."""

PAUSE_S = (0.5, 3.0)
"""Seconds between two kills."""

pytestmark = pytest.mark.timeout(300 + 40 * CYCLES, func_only=True)


class Kills:
    """Kills something at random, again and again, until it is told to stop."""

    def __init__(self, cloud: TestCloud, over: threading.Event) -> None:
        self.cloud, self.over, self.dice = cloud, over, random.Random(CYCLES)
        self.done: dict[str, int] = {}
        self._ways: dict[str, tuple[int, Callable[[], bool]]] = {
            "sandbox": (10, self._sandbox),
            "line": (6, lambda: self._worker("line")),
            "link": (4, lambda: self._worker("link")),
            "api": (2, lambda: self._worker("api")),
            "agent": (1, self._agent),
        }

    def run(self) -> None:
        names = sorted(self._ways)
        while not self.over.wait(self.dice.uniform(*PAUSE_S)):
            name = self.dice.choices(names, [self._ways[each][0] for each in names])[0]
            if self._ways[name][1]():
                self.done[name] = self.done.get(name, 0) + 1

    def _sandbox(self) -> bool:
        """The daemon, with everything in its sandbox."""
        found = [Room(folder) for folder in sorted(self.cloud.state.sandboxes.glob("*-s*"))]
        found = [each for each in found if each.processes()]
        if found:
            send(self.dice.choice(found).processes(), signal.SIGKILL)
        return bool(found)

    def _worker(self, function: str) -> bool:
        found = sorted(workers(self.cloud, function))
        if found:
            send([self.dice.choice(found)], signal.SIGKILL)
        return bool(found)

    def _agent(self) -> bool:
        signal_quietly(os.kill, self.cloud.cloud.pids[daemons.AGENT], signal.SIGKILL)
        self.cloud.run("up", "--no-deploy")
        return True


def cycle(person: Person, number: int) -> str:
    """One Sandbox's life; returns its uid."""
    path = f"sandboxes/cycle-{number}"
    body = manifest("Sandbox", f"cycle-{number}", {"resources": {"cpu": "0.25", "memory": "0.5"}})
    until(lambda: person.call("POST", "sandboxes", body).status_code, lambda code: code in (201, 409))
    uid = until(lambda: person.call("GET", path), lambda answer: answer.status_code == 200).json()[
        "metadata"
    ]["uid"]
    stands = until(lambda: phase(person, path), lambda seen: seen in ("Running", "Paused"))
    if stands == "Running" and number % 2:
        until(lambda: person.call("POST", f"{path}/stop").status_code, lambda code: code in (200, 202))
        until(lambda: phase(person, path), lambda seen: seen == "Paused")
    until(lambda: person.call("DELETE", path).status_code, lambda code: code in (200, 202, 404))
    until(lambda: person.call("GET", path).status_code, lambda code: code == 404)
    return str(uid)


def phase(person: Person, path: str) -> str:
    answer = person.call("GET", path)
    return answer.json()["status"]["phase"] if answer.status_code == 200 else ""


def left_over(cloud: TestCloud, uids: list[str]) -> dict[str, list[str]]:
    """What is left of these Sandboxes, and what in the whole cloud knows nothing of its other side."""
    every = {f"orphan {kind}": names for kind, names in orphans(cloud).items()}
    return {"processes": processes(cloud, uids), "rows": rows(cloud, uids), **every}


def rows(cloud: TestCloud, uids: list[str]) -> list[str]:
    """Partitions of lines and machines of these Sandboxes that are still there."""
    table = boto3.client("dynamodb", **cloud.cloud.client_arguments()).get_paginator("scan")
    found: list[str] = []
    for page in table.paginate(TableName=cloud.cloud.output("TableName"), ProjectionExpression="pk"):
        keys = {item["pk"]["S"] for item in page["Items"]}
        found += [key for key in keys if any(uid in key for uid in uids)]
    return sorted(found)


def processes(cloud: TestCloud, uids: list[str]) -> list[str]:
    """Sandboxes of these uids that have a process, or a folder."""
    return sorted(
        folder.name for folder in cloud.state.sandboxes.glob("*") if any(uid in folder.name for uid in uids)
    )


@pytest.mark.req("FLD-10", "NOD-399", "NOD-412", "NOD-073")
def test_no_process_no_row_and_no_task_is_left_over(local_cloud: TestCloud) -> None:
    over, uids, people = threading.Event(), list[str](), [Person(local_cloud) for _ in range(AT_ONCE)]
    kills = Kills(local_cloud, over)
    killing = threading.Thread(target=kills.run)
    killing.start()
    try:
        with ThreadPoolExecutor(AT_ONCE) as pool:
            lives = [pool.submit(cycle, people[number % AT_ONCE], number) for number in range(CYCLES)]
            uids = [life.result() for life in lives]
    finally:
        over.set()
        killing.join()
        for person in people:
            person.leave()
    ended = time.monotonic()
    left, _ = until(
        lambda: (left_over(local_cloud, uids), time.monotonic() - ended),
        lambda seen: not any(seen[0].values()) or seen[1] > FIVE_MINUTES_S,
    )
    print(f"{CYCLES} cycles, kills {kills.done}, left over {left}")
    assert not any(left.values()), left
    assert len(set(uids)) == CYCLES
