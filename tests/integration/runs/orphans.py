"""What should not be there: tasks, rows and processes of which no other side knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import boto3

from localstack.testing import TestCloud
from tests.integration.runs.machine import Room

LIVE = ("requested", "running")
Orphans = dict[str, list[str]]


def orphans(cloud: TestCloud) -> Orphans:
    """Of the whole cloud, and each list empty where all is as it should be.

    `tasks`: tasks meant to run whose sandbox has no live row, or another task on record; `rows`: sandboxes that run by
    their row, and whose task does not; `processes`: sandboxes on the machine, with a process or a folder, without a
    live row.
    """
    rows, running = sandbox_rows(cloud), running_tasks(cloud)
    tasks = {arn for arn, each in running.items() if not _is_wanted(arn, rows.get(each["startedBy"]))}
    houses = {each["startedBy"] for arn, each in running.items() if arn not in tasks}
    lived_in = [Room(folder) for folder in cloud.state.sandboxes.glob("*-s*")]
    return {
        "tasks": sorted(f"{running[arn]['startedBy']} {arn}" for arn in tasks),
        "rows": sorted(
            name for name, row in rows.items() if row["state"] == "running" and name not in houses
        ),
        "processes": sorted(
            each.folder.name
            for each in lived_in
            if not each.is_gone() and rows.get(each.folder.name, {}).get("state") not in LIVE
        ),
    }


def sandbox_rows(cloud: TestCloud) -> dict[str, dict[str, Any]]:
    """The heads of all sandboxes in the journal, by id."""
    journal: Any = boto3.resource("dynamodb", **cloud.cloud.client_arguments())
    table = journal.Table(cloud.cloud.output("TableName"))
    found: dict[str, dict[str, Any]] = {}
    more: dict[str, Any] = {"ConsistentRead": True}
    while True:
        page = table.scan(**more)
        heads = [row for row in page["Items"] if row["pk"].startswith("sb#") and row["sk"] == "head"]
        found |= {row["pk"].removeprefix("sb#"): row for row in heads}
        if "LastEvaluatedKey" not in page:
            return found
        more["ExclusiveStartKey"] = page["LastEvaluatedKey"]


def running_tasks(cloud: TestCloud) -> dict[str, dict[str, Any]]:
    """All tasks of the cluster that are meant to run, by ARN."""
    ecs, cluster = boto3.client("ecs", **cloud.cloud.client_arguments()), cloud.cloud.output("ClusterName")
    arns = [
        arn for page in ecs.get_paginator("list_tasks").paginate(cluster=cluster) for arn in page["taskArns"]
    ]
    found: dict[str, dict[str, Any]] = {}
    for start in range(0, len(arns), 100):
        known = ecs.describe_tasks(cluster=cluster, tasks=arns[start : start + 100])["tasks"]
        found |= {each["taskArn"]: each for each in known if each["desiredStatus"] == "RUNNING"}
    return found


def _is_wanted(arn: str, row: Mapping[str, Any] | None) -> bool:
    return row is not None and row["state"] in LIVE and row.get("task", arn) == arn
