"""How DynamoDB, S3 and Step Functions refuse, break, and lose answers.

Before the request is carried out: `conflict`, `throttle`, `slow`, `broken`, `unprocessed`. After it: `broken_after`
(an error is answered though it took effect) and `cut` (the connection ends within the answer).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from localstack.cloud.gate import Application, Receive, Scope, Send
from localstack.cloud.write_ahead import answer_of, read_body
from localstack.faults.weather import Weather

AFTER = ("broken_after", "cut")
# A role's session: what people, CDK and the agent sign with is the root's own key.
OF_A_FUNCTION = re.compile(rb"Credential=ASIA\w+/\d+/[\w-]+/(\w+)/")
SERVICES = ("dynamodb", "s3", "states")
READS = ("Get", "Query", "BatchGet", "TransactGet")


@dataclass(frozen=True)
class Answer:
    """An HTTP answer that is made up."""

    status: int
    body: bytes
    kind: bytes = b"application/x-amz-json-1.0"


class Refusals:
    """ASGI application around the emulated AWS."""

    def __init__(self, inner: Application, weather: Weather) -> None:
        self._inner = inner
        self._weather = weather

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        service = disturbed_service(scope)
        if service is None:
            await self._inner(scope, receive, send)
            return
        operation = operation_of(scope)
        fault = self._weather.fault(service, kinds(service, operation), operation)
        if fault is None:
            await self._inner(scope, receive, send)
            return
        body = await read_body(receive)
        if fault not in AFTER:
            await give(send, refusal(service, operation, fault, body))
            return
        messages = await answer_of(self._inner, scope, body)
        if fault == "broken_after":
            await give(send, refusal(service, operation, "broken", body))
        else:
            await cut(send, messages)


def disturbed_service(scope: Scope) -> str | None:
    """The service that a function's request goes to, if it is one that may go wrong."""
    if scope["type"] != "http":
        return None
    found = OF_A_FUNCTION.search(dict(scope["headers"]).get(b"authorization", b""))
    service = found[1].decode() if found else None
    return service if service in SERVICES else None


def operation_of(scope: Scope) -> str:
    """`PutItem`, `StartExecution`; of S3 the method."""
    target = dict(scope["headers"]).get(b"x-amz-target", b"").decode("latin-1")
    return target.rpartition(".")[2] or scope["method"]


def kinds(service: str, operation: str) -> tuple[str, ...]:
    """What may happen to this operation on AWS."""
    if service == "s3":
        return ("slow", "broken", *AFTER)
    if service == "states":
        return ("throttle", "broken", *AFTER)
    if operation == "BatchGetItem":
        return ("throttle", "broken", "unprocessed", *AFTER)
    if operation.startswith(READS):
        return ("throttle", "limit", "broken", *AFTER)
    return ("conflict", "throttle", "limit", "broken", *AFTER)


def refusal(service: str, operation: str, fault: str, body: bytes) -> Answer:
    """How the service says it."""
    if service == "s3":
        status, code = (503, "SlowDown") if fault == "slow" else (500, "InternalError")
        text = f"<Error><Code>{code}</Code><Message>{code} was injected</Message></Error>"
        return Answer(status, b'<?xml version="1.0" encoding="UTF-8"?>\n' + text.encode(), b"application/xml")
    if fault == "broken":
        return _error(500, "InternalServerError" if service == "dynamodb" else "ServiceUnavailable")
    if service == "states" or fault == "limit":
        return _error(400, "ThrottlingException")
    if fault == "throttle":
        return _error(400, "ProvisionedThroughputExceededException")
    request = json.loads(body)
    if fault == "unprocessed":
        return Answer(200, json.dumps({"Responses": {}, "UnprocessedKeys": request["RequestItems"]}).encode())
    if operation != "TransactWriteItems":
        return _error(400, "TransactionConflictException")
    reasons = [{"Code": "TransactionConflict", "Message": "Transaction is ongoing for the item"}]
    reasons += [{"Code": "None"}] * (len(request["TransactItems"]) - 1)
    return _error(400, "TransactionCanceledException", CancellationReasons=reasons)


def _error(status: int, code: str, **more: Any) -> Answer:
    return Answer(status, json.dumps({"__type": code, "message": f"{code} was injected", **more}).encode())


async def give(send: Send, answer: Answer) -> None:
    headers = [(b"content-type", answer.kind), (b"content-length", str(len(answer.body)).encode())]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})


async def cut(send: Send, messages: list[Any]) -> None:
    """Send the head of an answer and none of its body: the server ends the connection over it."""
    start = messages[0]
    size = sum(len(message.get("body", b"")) for message in messages[1:])
    headers = [
        pair for pair in start["headers"] if pair[0].lower() not in (b"content-length", b"transfer-encoding")
    ]
    length = (b"content-length", str(size + 1).encode())  # also an empty answer is missing something then
    await send({**start, "headers": [*headers, length]})
    await send({"type": "http.response.body", "body": b"", "more_body": True})
