"""How a test tells the cloud what shall go wrong: one line of JSON each way, over a socket of the state folder.

    {"do": "weather", "seed": 7, "rates": {"dynamodb": 0.02, "stream": 0.3}}
    {"do": "storm", "name": "s3", "seconds": 4}
    {"do": "busy"}                                       → the workers that serve a call now

Names of what goes wrong: `dynamodb s3 states` (refused, broken, answers lost), `stream event timer execution call`
(lost, late, doubled).
"""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any

from localstack.faults.kicks import Kicks
from localstack.faults.weather import Weather
from localstack.paths import State

ANSWER_S = 10.0


def socket_path(state: State) -> str:
    return str(state.run / "faults.sock")


async def serve(state: State, weather: Weather, kicks: Kicks) -> asyncio.Server:
    """Listen for orders until the server is closed."""

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        order = json.loads(await reader.readline())
        writer.write(json.dumps(carry_out(order, weather, kicks)).encode() + b"\n")
        await writer.drain()
        writer.close()

    path = socket_path(state)
    (state.run / "faults.sock").unlink(missing_ok=True)  # of a cloud that was killed
    return await asyncio.start_unix_server(hear, path)


def carry_out(order: dict[str, Any], weather: Weather, kicks: Kicks) -> Any:
    """One order; its answer."""
    match order:
        case {"do": "weather", "seed": seed, "rates": rates}:
            weather.change(seed, rates)
        case {"do": "storm", "name": name, "seconds": seconds}:
            weather.storm(name, seconds)
        case {"do": "busy"}:
            return kicks.busy()
        case _:
            return {"error": f"{order!r} is no order"}
    return {}


def tell(state: State, **order: Any) -> Any:
    """Give an order to the cloud of `state`; its answer.

    Raises:
        OSError: no cloud with faults listens there.
    """
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(ANSWER_S)
        line.connect(socket_path(state))
        line.sendall(json.dumps(order).encode() + b"\n")
        with line.makefile() as answer:
            return json.loads(answer.readline())
