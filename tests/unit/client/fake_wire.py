"""A wire that plays prepared answers, in a time of its own, for those who block and those who await alike."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Generator, Iterable
from itertools import islice
from typing import Any
from urllib.parse import parse_qs, urlsplit

import nodus
from nodus._config import Settings
from nodus._wire import Answer, Request

Played = Answer | Exception | Callable[[Request], Answer]


def answer(body: Any, code: int = 200, **headers: str) -> Answer:
    """An answer with a JSON body (bytes: as they are)."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Answer(code, {name.replace("_", "-"): value for name, value in headers.items()}, content)


def refusal(code: int, reason: str, **headers: str) -> Answer:
    """A refusal of the server."""
    body = {"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": reason, "message": "m"}
    return answer(body | {"code": code}, code, **headers)


def query_of(request: Request) -> dict[str, str]:
    """The query of a request."""
    return {name: values[0] for name, values in parse_qs(urlsplit(request.url).query).items()}


class FakeWire:
    """Plays the answers, one for each request. ``spends``: how long each exchange takes."""

    def __init__(self, answers: Iterable[Played], spends: float = 0.0) -> None:
        self.answers = iter(answers)
        self.spends = spends
        self.seen: list[Request] = []
        self.pauses: list[float] = []
        self.now = 0.0

    def clock(self) -> float:
        return self.now

    def chance(self) -> float:
        return 0.5

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    def exchange(self, request: Request) -> Answer:
        self.seen.append(request)
        self.now += self.spends
        played = next(self.answers)
        if isinstance(played, Exception):
            raise played
        return played(request) if callable(played) else played


class AwaitedWire:
    """The same wire, awaited."""

    def __init__(self, wire: FakeWire) -> None:
        self._wire = wire
        self.clock = wire.clock
        self.chance = wire.chance

    async def sleep(self, seconds: float) -> None:
        self._wire.sleep(seconds)

    async def exchange(self, request: Request) -> Answer:
        return self._wire.exchange(request)


class Player:
    """A client of either kind over a fake wire; what it is asked for comes back the same way from both."""

    def __init__(self, *, awaits: bool, answers: Iterable[Played], spends: float = 0.0) -> None:
        self.wire = FakeWire(answers, spends)
        self.client: Any = nodus.AsyncClient() if awaits else nodus.Client()
        self.client.__dict__["settings"] = Settings("http://nodus.test", "token-of-the-test", None, "default")
        self.client.__dict__["wire"] = AwaitedWire(self.wire) if awaits else self.wire

    def result(self, call: Callable[[Any], Any]) -> Any:
        """What an operation gives."""
        given = call(self.client)
        return asyncio.run(given) if asyncio.iscoroutine(given) else given

    def first(self, number: int | None, call: Callable[[Any], Any]) -> list[Any]:
        """The first things that a stream gives (``None``: all), after which it is closed."""
        given = call(self.client)
        if isinstance(given, Generator):
            found = list(islice(given, number))
            given.close()
            return found
        return asyncio.run(_first(number, given))


async def _first(number: int | None, given: AsyncGenerator[Any]) -> list[Any]:
    found: list[Any] = []
    async for one in given:
        found.append(one)
        if len(found) == number:
            break
    await given.aclose()
    return found
