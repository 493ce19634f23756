"""What should not be there: tasks, rows and processes of which no other side knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import boto3

from localstack.testing import TestCloud
from tests.integration.runs.machine import Room

LIVE = ("requested", "running")
WARM = "warm-"
Orphans = dict[str, list[str]]
Row = dict[str, Any]


@dataclass(frozen=True)
class Rows:
    """What the journal knows of machines: the heads of sandboxes by id, the machines that wait for somebody, and whose
    others have become."""

    sandboxes: dict[str, Row]
    waiting: dict[str, Row]
    became: dict[str, str]

    def owner(self, started_as: str) -> str:
        """The sandbox of a task that was started under this id."""
        return self.became.get(started_as, started_as)

    def wants(self, started_as: str, task: str | None = None) -> bool:
        """Whether a machine that was started under this id is wanted, in this task if one is named."""
        row = self.waiting.get(started_as) or self.sandboxes.get(self.owner(started_as))
        if row is None or row.get("state", "running") not in LIVE:
            return False
        return task is None or row.get("task", task) == task


def orphans(cloud: TestCloud) -> Orphans:
    """Of the whole cloud, and each list empty where all is as it should be.

    `tasks`: tasks meant to run whose sandbox has no live row, or another task on record; `rows`: sandboxes that run by
    their row, and whose task does not; `processes`: sandboxes on the machine, with a process or a folder, without a
    live row. A machine that waits for somebody has a row of its own.
    """
    rows, running = rows_of(cloud), running_tasks(cloud)
    wanted = {arn for arn, each in running.items() if rows.wants(each["startedBy"], arn)}
    housed = {rows.owner(running[arn]["startedBy"]) for arn in wanted}
    rooms = [
        Room(folder) for pattern in ("*-s*", f"{WARM}*") for folder in cloud.state.sandboxes.glob(pattern)
    ]
    lived_in = [each.folder.name for each in rooms if not each.is_gone()]
    return {
        "tasks": sorted(f"{each['startedBy']} {arn}" for arn, each in running.items() if arn not in wanted),
        "rows": sorted(
            name for name, row in rows.sandboxes.items() if row["state"] == "running" and name not in housed
        ),
        "processes": sorted(name for name in lived_in if not rows.wants(name)),
    }


def rows_of(cloud: TestCloud) -> Rows:
    """What the journal knows now."""
    found = Rows({}, {}, {})
    for row in _rows(cloud):
        noun, _, name = row["pk"].partition("#")
        if (noun, row["sk"]) == ("sb", "head"):
            found.sandboxes[name] = row
        elif noun == "warm":
            found.waiting[row["sk"]] = row
        elif noun == "bound":
            found.became[name] = row["sandbox"]
    return found


def _rows(cloud: TestCloud) -> list[Row]:
    journal: Any = boto3.resource("dynamodb", **cloud.cloud.client_arguments())
    table = journal.Table(cloud.cloud.output("TableName"))
    found: list[Row] = []
    more: Row = {"ConsistentRead": True}
    while True:
        page = table.scan(**more)
        found += page["Items"]
        if "LastEvaluatedKey" not in page:
            return found
        more["ExclusiveStartKey"] = page["LastEvaluatedKey"]


def running_tasks(cloud: TestCloud) -> dict[str, Row]:
    """All tasks of the cluster that are meant to run, by ARN."""
    ecs, cluster = boto3.client("ecs", **cloud.cloud.client_arguments()), cloud.cloud.output("ClusterName")
    arns = [
        arn for page in ecs.get_paginator("list_tasks").paginate(cluster=cluster) for arn in page["taskArns"]
    ]
    found: dict[str, Row] = {}
    for start in range(0, len(arns), 100):
        known = ecs.describe_tasks(cluster=cluster, tasks=arns[start : start + 100], include=["TAGS"])[
            "tasks"
        ]
        found |= {each["taskArn"]: each for each in known if each["desiredStatus"] == "RUNNING"}
    return found
