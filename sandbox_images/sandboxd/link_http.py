"""The HTTP verbs of the sandbox link, repeated until they get a definite answer."""

import asyncio
import hashlib
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from sandboxd.results import Result
from sandboxd.retry import Backoff

logger = logging.getLogger(__name__)

_MAX_ANSWER_BYTES = 16 * 1024 * 1024
_CALL_TIMEOUT = aiohttp.ClientTimeout(total=30, sock_connect=10)
_RETRY_AFTER_MOST_S = 300.0


_CLOSED = frozenset({401, 410})
_FIRST = frozenset({"hello", "whose"})
"""Verbs that a daemon begins with: it has nothing to do where they are refused for good."""

_LATER = frozenset({408, 425, 429})
"""Answers below 500 that ask for the same call again; every other one would be answered the same way again."""


class LinkClosedError(Exception):
    """The control plane has no more use for this daemon (401 or 410), or does not take it at all: it must stop."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Identity:
    """Who this life of the daemon is; made at start, kept in memory only."""

    boot: str
    token: str = field(repr=False)

    @property
    def token_hash(self) -> str:
        """sha256 of the token, hexadecimal."""
        return hashlib.sha256(self.token.encode()).hexdigest()

    @property
    def headers(self) -> dict[str, str]:
        """What every call to the link carries."""
        return {"Authorization": f"Bearer {self.token}"}


@dataclass(frozen=True)
class Pulled:
    """What a pull brought."""

    commands: list[Any]
    cancel: list[str]
    stop: bool
    more: bool = False
    asks: list[Any] = field(default_factory=list)


class LinkHttp:
    """Speaks `POST {base}/{noun}/{id}/{verb}`; the noun is `sandboxes`, of a machine that is nobody's yet `warm`.

    Every verb may be repeated as often as needed, so a lost answer is asked for again: 5xx, 429, 408 and connection
    errors are retried without end, because the daemon's hard deadline is the end. Any other 4xx is definite: a
    daemon whose hello is refused stops, an outcome that is refused is dropped, a pull comes again as pulls do.
    """

    def __init__(
        self,
        session: aiohttp.ClientSession,
        base: str,
        sandbox_id: str,
        identity: Identity,
        make_backoff: Callable[[], Backoff] = Backoff,
        *,
        noun: str = "sandboxes",
    ) -> None:
        self._make_backoff = make_backoff
        self._session = session
        self._url = f"{base}/{noun}/{sandbox_id}/"
        self._identity = identity

    async def whose(self, code: str | None, enrol_hash: str) -> str | None:
        """The sandbox that a warm machine has become; None: it is nobody's yet.

        Args:
            code: what its task was given.
            enrol_hash: sha256 of the code by which it will enrol, hexadecimal.

        Raises:
            LinkClosedError: nobody wants the machine.
        """
        body = {"tokenHash": self._identity.token_hash, "enrolCode": code, "enrolHash": enrol_hash}
        sandbox = (await self._call("whose", body)).get("sandbox")
        return sandbox if isinstance(sandbox, str) and sandbox else None

    async def hello(self, enrol_code: str | None, about: Mapping[str, Any]) -> dict[str, str]:
        """Binds this daemon's token to the sandbox; returns the values of its secret variables by name.

        Raises:
            LinkClosedError: the sandbox does not take this daemon.
        """
        body = {"boot": self._identity.boot, "tokenHash": self._identity.token_hash, **about}
        if enrol_code is not None:
            body["enrolCode"] = enrol_code
        secrets = (await self._call("hello", body)).get("secrets")
        return {str(name): str(value) for name, value in secrets.items()} if isinstance(secrets, dict) else {}

    async def pull(self, have: Sequence[str] = (), usage: Mapping[str, int] | None = None) -> Pulled:
        """Claims what is pending, and hears of cancellations.

        Args:
            have: commands and asks that are at work here: they are not sent again.
            usage: what the sandbox uses, when it is time to tell it.

        Raises:
            LinkClosedError: the sandbox is released.
        """
        body: dict[str, Any] = {"boot": self._identity.boot, "have": list(have)}
        answer = await self._call("pull", body if usage is None else {**body, "usage": usage})
        commands, cancel, asks = answer.get("commands"), answer.get("cancel"), answer.get("asks")
        return Pulled(
            commands if isinstance(commands, list) else [],
            [str(command_id) for command_id in cancel] if isinstance(cancel, list) else [],
            answer.get("stop") is True,
            answer.get("more") is True,
            asks if isinstance(asks, list) else [],
        )

    async def done(self, command_id: str, result: Result) -> None:
        """Tells an outcome; one that is refused (409: the command is not this boot's) is logged and dropped.

        Raises:
            LinkClosedError: the sandbox is released.
        """
        await self._call("done", {"boot": self._identity.boot, "id": command_id, "result": result})

    async def _call(self, verb: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        backoff = self._make_backoff()
        while True:
            at_least_s = 0.0
            try:
                async with self._session.post(
                    self._url + verb,
                    json=body,
                    headers=self._identity.headers,
                    timeout=_CALL_TIMEOUT,
                    allow_redirects=False,  # the token goes to nobody else
                ) as response:
                    if response.status == 200:
                        return await _json_object(response)
                    if response.status in _CLOSED or (verb in _FIRST and _is_definite(response.status)):
                        raise LinkClosedError(
                            response.status, f"The link answered {response.status} to {verb}."
                        )
                    if verb == "done" and _is_definite(response.status):
                        logger.error("command %s: its outcome is refused, %d", body["id"], response.status)
                        return {}
                    at_least_s = _retry_after(response)
                    logger.warning("%s: the link answered %d, trying again", verb, response.status)
            except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
                logger.warning("%s: %s: %s, trying again", verb, type(error).__name__, error)
            await asyncio.sleep(backoff.failed(at_least_s))


def _is_definite(status: int) -> bool:
    return 400 <= status < 500 and status not in _LATER


async def _json_object(response: aiohttp.ClientResponse) -> Mapping[str, Any]:
    """The body as an object; one that is cut, too long or no object is a failed call and asked for again."""
    chunks: list[bytes] = []
    size = 0
    async for chunk in response.content.iter_chunked(65536):
        size += len(chunk)
        if size > _MAX_ANSWER_BYTES:
            raise ValueError(f"the answer is longer than {_MAX_ANSWER_BYTES} bytes")
        chunks.append(chunk)
    parsed = json.loads(b"".join(chunks))
    if not isinstance(parsed, dict):
        raise ValueError("the answer is no JSON object")
    return parsed


def _retry_after(response: aiohttp.ClientResponse) -> float:
    value = response.headers.get("Retry-After", "")
    return min(float(value), _RETRY_AFTER_MOST_S) if value.isascii() and value.isdecimal() else 0.0
