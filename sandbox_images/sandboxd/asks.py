"""Asks: what the control plane wants to know or have done now, and keeps no record of (docs/protocols.md §2).

An ask may be given more than once: the same id is answered once, and of those with the same key only the first
changes something. Nothing of them is written to disk: a daemon that dies answers none of them.
"""

import asyncio
import hashlib
import json
import logging
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sandboxd.execcore.spec import ExecState
from sandboxd.requests import Fields, InvalidRequestError
from sandboxd.results import Result, failed_result, lost_result

logger = logging.getLogger(__name__)

Handler = Callable[[Fields], Awaitable[Result]]
"""Does asks of one kind. It may raise `InvalidRequestError`, as long as nothing has changed."""

KEPT = 256
"""Answers that are kept for asks that come again."""

_ID = re.compile(r"ask-[0-9]{2}-[0-9a-f]{32}")
_MOST_KEY = 200


@dataclass(frozen=True)
class Ask:
    """One ask. `key`: the same for what is asked again; empty: it is asked once."""

    id: str
    key: str
    kind: str
    request: Mapping[str, Any]

    @classmethod
    def from_wire(cls, wire: Any) -> "Ask":
        """Reads the envelope.

        Raises:
            InvalidRequestError: there is nothing to answer to.
        """
        fields = wire if isinstance(wire, dict) else {}
        name, key, request = fields.get("id"), fields.get("key"), fields.get("request")
        if not isinstance(name, str) or not _ID.fullmatch(name):
            raise InvalidRequestError("An ask has no usable id.")
        if not isinstance(key, str) or len(key) > _MOST_KEY:
            raise InvalidRequestError(f"Ask {name} has no usable key.")
        return cls(name, key, str(fields.get("kind")), request if isinstance(request, dict) else {})

    @property
    def digest(self) -> str:
        """What tells it from another ask: everything but the addresses, which are signed anew each time."""
        told = {name: value for name, value in self.request.items() if name != "url"}
        return hashlib.sha256(json.dumps([self.kind, told], sort_keys=True).encode()).hexdigest()


class AskDesk:
    """Answers asks.

    Args:
        handlers: who does the asks of a kind.
        workspace, workspace_called: as of `CommandDesk`.
    """

    def __init__(
        self, handlers: Mapping[str, Handler], *, workspace: str, workspace_called: str | None = None
    ) -> None:
        self._handlers = handlers
        self._workspace = workspace
        self._workspace_called = workspace_called
        self._by_id: OrderedDict[str, asyncio.Task[Result]] = OrderedDict()
        self._by_key: OrderedDict[str, tuple[str, asyncio.Task[Result]]] = OrderedDict()

    def submit(self, ask: Ask) -> "asyncio.Task[Result]":
        """Takes an ask; returns a task of its answer, which never raises."""
        known = self._by_id.get(ask.id)
        if known is not None:
            return known
        task = self._same(ask) if ask.key else None
        if task is None:
            task = asyncio.create_task(self._answer(ask))
            if ask.key:
                self._by_key[ask.key] = (ask.digest, task)
        self._by_id[ask.id] = task
        _forget_old(self._by_id, lambda kept: kept)
        _forget_old(self._by_key, lambda kept: kept[1])
        return task

    def _same(self, ask: Ask) -> "asyncio.Task[Result] | None":
        """The answer that an earlier ask with the key gets or got; None when it is to be done.

        What has failed had no effect, and may be tried again.
        """
        digest, task = self._by_key.get(ask.key, ("", None))
        if task is None or (task.done() and task.result()["state"] == ExecState.FAILED.value):
            return None
        if digest == ask.digest:
            return task
        message = "The same key was given before with another request. Nothing was done; use another key."
        return asyncio.create_task(_settled(failed_result("conflict", message)))

    async def _answer(self, ask: Ask) -> Result:
        handler = self._handlers.get(ask.kind)
        if handler is None:
            return failed_result("invalid", f"This sandbox knows no question {ask.kind!r}.")
        try:
            return await handler(Fields(ask.request, self._workspace, self._workspace_called))
        except InvalidRequestError as error:
            return failed_result("invalid", str(error))
        except Exception:
            logger.exception("ask %s: the daemon failed", ask.id)
            return lost_result("internal", "The daemon failed. Look before you ask again.")


def _forget_old(kept: "OrderedDict[str, Any]", task_of: Callable[[Any], "asyncio.Task[Result]"]) -> None:
    """Forgets the oldest answers beyond what is kept; what is being done stays."""
    for name in list(kept)[: max(len(kept) - KEPT, 0)]:
        if task_of(kept[name]).done():
            del kept[name]


async def _settled(result: Result) -> Result:
    return result
