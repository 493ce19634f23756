"""The journal's rows as an operator reads them in DynamoDB."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import boto3

from localstack.testing import TestCloud
from tests.crash.campaign.ledger import TOLD_LOST, RunRecord, Uncertain


class CloudJournal:
    """Reads of the deployed table; safe for one thread."""

    def __init__(self, cloud: TestCloud) -> None:
        self._cloud = cloud
        self._reached: tuple[str, str] | None = None
        self._made: Any = None

    @property
    def _table(self) -> Any:
        """Made anew only where a restart has moved the cloud: that costs as much as a hundred reads."""
        known = self._cloud.cloud
        reached = known.endpoint, known.access_key_id
        if reached != self._reached:
            resource: Any = boto3.resource("dynamodb", **known.client_arguments())
            self._reached, self._made = reached, resource.Table(known.output("TableName"))
        return self._made

    def row(self, pk: str, sk: str) -> dict[str, Any]:
        """The row as it is; empty where there is none."""
        return self._table.get_item(Key={"pk": pk, "sk": sk}, ConsistentRead=True).get("Item", {})

    def claimant(self, line: str) -> str | None:
        """Who works on a line; None: nobody."""
        return self.row(f"conv#{line}", "head").get("line", {}).get("claimant")

    def uncertain(self, run: RunRecord, entry: Mapping[str, str]) -> Uncertain:
        """The command that an entry of a parked run's `status.unresolved` asks about."""
        step = entry["step"]
        task = self._task(run, step)
        sandbox = str(task.get("sandbox", ""))
        command = self.row(f"sb#{sandbox}", f"cmd#{task.get('run')}.{task.get('key')}")
        place = self.row(f"sb#{sandbox}", "head")
        token = next((token for token in run.tokens if f"{token} " in entry["input"]), "")
        states = _state(command), str(place.get("state"))
        return Uncertain(step, entry["since"], sandbox, *states, token)

    def _task(self, run: RunRecord, step: str) -> dict[str, Any]:
        """The task behind a step: the uncertain one in the place that its name gives."""
        turn, _, rest = step.partition(".")
        number = int(turn.removeprefix("turn-"))
        tasks = self._table.query(
            KeyConditionExpression="pk = :pk AND begins_with(sk, :t)",
            ExpressionAttributeValues={":pk": f"run#{run.uid}-{number}", ":t": "t#"},
            ConsistentRead=True,
        )["Items"]
        uncertain = [task for task in tasks if task["state"] == "uncertain"]
        place = rest.rpartition(".")[2]
        return next(
            (task for task in uncertain if str(task.get("number")) == place),
            uncertain[0] if uncertain else {},
        )


def _state(command: Mapping[str, Any]) -> str:
    """What became of a command; `told lost` where its daemon was asked to stop and said so with its last word."""
    said = json.loads(command.get("result", {}).get("text") or "{}")
    return TOLD_LOST if said.get("state") == "lost" else str(command.get("state"))
