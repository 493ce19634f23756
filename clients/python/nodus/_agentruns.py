"""Runs as objects: what can be asked of them beside what every kind has."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from nodus._flow import Flow, Item, Stream, operation, stream
from nodus._kinds import API_VERSION
from nodus._pages import LARGEST_PAGE, Pages, items_of
from nodus._record import Record
from nodus._resources import AsyncResource, Manifest, Resource, ResourceFlows, dry
from nodus._transport import Call

LARGEST_BATCH = 100  # NOD-360
Records = list[Record]


class AgentRunsFlows(ResourceFlows):
    """Runs: one task each."""

    @operation
    def create_many(
        self, manifests: Iterable[Manifest], *, key: str | None = None, dry_run: bool = False
    ) -> Flow[Records]:
        """Create up to 100 runs at once: all of them, in their order, or none (NOD-360, NOD-361).

        Those that come back have no ``spec`` where it is over 2 MiB of all together.

        Args:
            manifests: the runs; each after those that it depends on. A group's member needs no name.
            key: the batch's idempotency key: the same key and runs again give the first outcome for a day; ``None``:
                a new one, which only the tries of this call share.
            dry_run: have them checked, and store nothing.

        Raises:
            ValueError: more than 100, which could not be made all or none: make several batches.
            ApiError: the server refuses one of them, and so all; ``causes`` name it (``items[3].spec.agent``).
            IdempotencyKeyConflictError: the key was used for other runs.
        """
        items = [self._whole(manifest) for manifest in manifests]
        if len(items) > LARGEST_BATCH:
            raise ValueError(
                f"{len(items)} runs: at most {LARGEST_BATCH} are created together, all or none; make several batches"
            )
        body = {"apiVersion": API_VERSION, "kind": f"{self.kind.name}List", "items": items}
        call = Call("POST", self.path(), query=dry(dry_run), body=body, repeatable=True, key=key)
        return items_of((yield from self._record(call)))

    @operation
    def cancel(self, name: str) -> Flow[Record]:
        """Ask an unfinished run to stop; a finished one stays as it is (NOD-045)."""
        # Cancelling twice is cancelling once (NODQ-23).
        return (yield from self._record(Call("POST", self.path(name, "cancel"), repeatable=True)))

    @operation
    def send(self, name: str, key: str, text: str) -> Flow[Record]:
        """Send a message to a run; the same key and text again is delivered once (NOD-180, NOD-183).

        Returns what was accepted: ``turn`` is the number of the turn that the message gets.

        Raises:
            AgentRunFinishedError: the run takes no messages any more.
            MessageKeyConflictError: the key was used for another text; nothing was delivered.
        """
        body = {"payload": text, "messageKey": key}
        return (
            yield from self._record(Call("POST", self.path(name, "messages"), body=body, repeatable=True))
        )

    @operation
    def resolve(
        self,
        name: str,
        step: str,
        *,
        happened: bool,
        text: str | None = None,
        exit_code: int | None = None,
        request_key: str | None = None,
    ) -> Flow[Record]:
        """Say what became of a step whose outcome is not known; the run goes on when none is left (NODQ-55).

        Args:
            name: the run.
            step: the step's name, as ``status.unresolved`` has it.
            happened: whether it took effect. A model call, or a command whose sandbox lives, is made again if not; where
                the sandbox is gone, the model hears that its command did not run, and a setup runs in the new one.
            text: what it put out, if it happened and that is known: a command's output. A model call that happened
                needs it: the reply's text.
            exit_code: how a command or the setup ended, if it happened.
            request_key: the same key and meaning again gives the first answer; ``None``: a new one.

        Raises:
            InvalidError: such a step cannot have this result, or needs one.
            ConflictError: somebody has resolved it, or nobody is asked about it; the message says which.
        """
        result = {key: value for key, value in (("text", text), ("exitCode", exit_code)) if value is not None}
        body: dict[str, Any] = {
            "step": step,
            "outcome": "Happened" if happened else "DidNotHappen",
            "requestKey": os.urandom(16).hex() if request_key is None else request_key,
            **({"result": result} if result else {}),
        }
        # The server keeps the request key: sent again after a lost answer, it gives the first outcome.
        return (
            yield from self._record(Call("POST", self.path(name, "resolution"), body=body, repeatable=True))
        )

    @stream
    def steps(self, name: str) -> Stream[Record]:
        """What the run did, in order (NOD-071)."""
        pages = Pages(lambda query: self._read(query, name, "steps"), {"limit": str(LARGEST_PAGE)})
        while (page := (yield from pages.next())) is not None:
            for step in items_of(page):
                yield Item(step)

    @operation
    def team(self, name: str) -> Flow[Record]:
        """How the run and its subagents stand (NOD-475)."""
        return (yield from self._read({}, name, "team"))

    @operation
    def answer(self, name: str) -> Flow[str]:
        """The run's whole answer (NOD-067).

        Raises:
            AnswerNotReadyError: there is none yet.
        """
        reply = yield from self._send(Call("GET", self.path(name, "answer")))
        content = (yield from self._transport.fetch(reply)) if reply.code >= 300 else reply.content
        return content.decode("utf-8", "replace")


class AgentRuns(AgentRunsFlows, Resource):
    """Runs: one task each; every call returns when it is done."""


class AsyncAgentRuns(AgentRunsFlows, AsyncResource):
    """Runs: one task each; every call is awaited."""
