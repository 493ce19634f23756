"""Executions that Step Functions has accepted and that never begin, or begin late.

Whoever asked is told that it has begun: for the journal it is a kick like any other.
"""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

from localstack.cloud.gate import Application, Receive, Scope, Send
from localstack.cloud.write_ahead import answer_of, read_body
from localstack.faults.kicks import LATE_S
from localstack.faults.refusals import Answer, disturbed_service, give, operation_of
from localstack.faults.weather import Weather


class Executions:
    """ASGI application around the emulated AWS: disturbs `StartExecution`."""

    def __init__(self, inner: Application, weather: Weather) -> None:
        self._inner = inner
        self._weather = weather
        self._late: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if disturbed_service(scope) != "states" or operation_of(scope) != "StartExecution":
            await self._inner(scope, receive, send)
            return
        body = await read_body(receive)
        request: dict[str, Any] = json.loads(body)
        fate = self._weather.fault("execution", ("lost", "late"), str(request.get("name")))
        if fate == "late":
            task = asyncio.create_task(self._start(scope, body, self._weather.seconds(*LATE_S)))
            self._late.add(task)
            task.add_done_callback(self._late.discard)
        if fate is not None:
            arn = (
                f"{request['stateMachineArn'].replace(':stateMachine:', ':execution:')}:{request.get('name')}"
            )
            started = json.dumps({"executionArn": arn, "startDate": time.time()}).encode()
            await give(send, Answer(200, started))
            return
        for message in await answer_of(self._inner, scope, body):
            await send(message)

    async def _start(self, scope: Scope, body: bytes, delay_s: float) -> None:
        await asyncio.sleep(delay_s)
        await answer_of(self._inner, scope, body)
