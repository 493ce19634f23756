"""What a deployed run uses of Lambda, Step Functions and the stream, as the emulated AWS counts it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from localstack.testing import TestCloud
from tests.bench.cloud import client
from tests.bench.person import AGENT, Person

FUNCTIONS = ("api", "line", "link", "reactor")
"""Those that a run makes work; the sweeper works every minute whatever there is."""

_REPORT = re.compile(r"REPORT .*\tBilled Duration: ([\d.]+) ms")
SETTLE_S = 2.0
"""Seconds after a run's end in which the stream's last records still come in."""


@dataclass(frozen=True)
class Use:
    """One run's. `calls` by function, `gigabyte_seconds` likewise; the API's are those of its creation only."""

    calls: dict[str, int]
    seconds: dict[str, float]
    memory_gb: dict[str, float]
    transitions: int
    executions: int
    records: int

    def gigabyte_seconds(self, function: str) -> float:
        return self.seconds[function] * self.memory_gb[function]


class Usage:
    """Reads the logs and histories of one cloud."""

    def __init__(self, cloud: TestCloud) -> None:
        self._machine = cloud.cloud.output("LineMachineArn")
        self._names = {
            name.rpartition("-")[2]: name for name in cloud.cloud.output("FunctionNames").split(",")
        }
        self._logs, self._states = client(cloud.cloud, "logs"), client(cloud.cloud, "stepfunctions")
        self._lambda = client(cloud.cloud, "lambda")

    def of_run(self, person: Person, prompt: str) -> Use:
        """Makes a run, waits for its end, and counts. Other work must not be under way."""
        begin = int(time.time() * 1000)
        name = person.start(AGENT, prompt)
        created = int(time.time() * 1000)
        time.sleep(SETTLE_S)  # while it works, nobody reads: a reader's calls would count as the run's
        uid = person.ended([name])[name]["metadata"]["uid"]
        time.sleep(SETTLE_S)
        calls, seconds = {}, {}
        for function in FUNCTIONS:
            durations = list(self._durations(function, begin, created if function == "api" else None))
            calls[function], seconds[function] = len(durations), sum(durations) / 1000
        transitions, executions = self._transitions(uid)
        use = Use(calls, seconds, self._memory(), transitions, executions, self._records(begin))
        person.gone(name)
        return use

    def _memory(self) -> dict[str, float]:
        read = self._lambda.get_function_configuration
        return {each: read(FunctionName=self._names[each])["MemorySize"] / 1024 for each in FUNCTIONS}

    def _durations(self, function: str, begin: int, end: int | None) -> Iterator[float]:
        for event in self._events(function, begin):
            found = _REPORT.match(event["message"])
            if found and (end is None or event["timestamp"] <= end):
                yield float(found[1])

    def _records(self, begin: int) -> int:
        """Stream records that the reactor was given."""
        found = 0
        for event in self._events("reactor", begin):
            if event["message"].startswith("{"):
                found += json.loads(event["message"]).get("records", 0)
        return found

    def _events(self, function: str, begin: int) -> Iterator[dict[str, Any]]:
        group = f"/aws/lambda/{self._names[function]}"
        pages = self._logs.get_paginator("filter_log_events")
        for page in pages.paginate(logGroupName=group, startTime=begin):
            yield from page["events"]

    def _transitions(self, uid: str) -> tuple[int, int]:
        """States entered, and one for each execution's start, as AWS counts them; and the executions."""
        pages = self._states.get_paginator("list_executions").paginate(stateMachineArn=self._machine)
        own = [each for page in pages for each in page["executions"] if each["name"].startswith(f"{uid}-")]
        entered = 0
        for each in own:
            history = self._states.get_paginator("get_execution_history")
            for page in history.paginate(executionArn=each["executionArn"]):
                entered += sum(event["type"].endswith("StateEntered") for event in page["events"])
        return entered + len(own), len(own)
