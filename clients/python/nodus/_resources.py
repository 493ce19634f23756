"""The objects of a project, kind by kind."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import quote

from nodus._record import Record
from nodus._transport import APPLY_PATCH, MERGE_PATCH, Call, Reply
from nodus.errors import NodusError

if TYPE_CHECKING:
    from nodus._client import Client

API_VERSION = "nodus.dev/v1"
PAGE_SIZE = 100
LARGEST_PAGE = 500


@dataclass(frozen=True)
class Applied:
    """What an apply did: the object afterwards, and whether it is new."""

    object: Record
    created: bool


class Resource:
    """The objects of one kind in the client's project; every call may raise the errors of ``nodus.errors``."""

    kind: ClassVar[str]
    plural: ClassVar[str]
    _apply_may_repeat: ClassVar[bool]
    """Whether an apply whose answer was lost may be sent again."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def path(self, name: str | None = None, below: str | None = None) -> str:
        """The path of the collection, of an object, or of something below an object."""
        parts = [self.plural, *((name, below) if below else (name,) if name is not None else ())]
        if any(part in {"", ".", ".."} for part in parts):
            raise NodusError(
                f"{name!r} cannot be the name of an object: give its metadata.name", reason="Invalid"
            )
        tail = "/".join(quote(part or "", safe="") for part in parts)
        return f"/apis/{API_VERSION}/namespaces/{quote(self._client.project, safe='')}/{tail}"

    def get(self, name: str, *, within: float | None = None) -> Record:
        """Read one object.

        Args:
            name: its name.
            within: seconds after which the read gives up; ``None``: after its bounded tries.
        """
        return self._record(Call("GET", self.path(name)), within)

    def create(self, name: str, spec: Mapping[str, Any]) -> Record:
        """Create an object; a name that is taken raises ``AlreadyExistsError``."""
        body = {**self._head(), "metadata": {"name": name}, "spec": dict(spec)}
        # The server keeps the call's key: sent again after a lost answer, it gives the first outcome (FLD-16).
        return self._record(Call("POST", self.path(), body=body, repeatable=True))

    def apply(self, manifest: Mapping[str, Any]) -> Applied:
        """Create the object, or bring an existing one to this ``spec`` (NOD-009).

        Args:
            manifest: ``metadata`` with the name, and ``spec``; ``apiVersion`` and ``kind`` are filled in.

        Raises:
            OutcomeUnknownError: the answer was lost, and sending it again could do more than sending it once.
        """
        body = {**self._head(), **manifest}
        name: str = body["metadata"]["name"]
        call = Call(
            "PATCH", self.path(name), body=body, content_type=APPLY_PATCH, repeatable=self._apply_may_repeat
        )
        reply = self._send(call)
        return Applied(Record(reply.json()), created=reply.code == 201)

    def patch(self, name: str, patch: Mapping[str, Any]) -> Record:
        """Merge a JSON merge patch into an object, for example ``{"spec": {"maxParallelAgents": 0}}``."""
        return self._record(Call("PATCH", self.path(name), body=dict(patch), content_type=MERGE_PATCH))

    def delete(self, name: str) -> Record:
        """Delete an object; what comes back is the object that is going, or a ``Status`` of success."""
        return self._record(Call("DELETE", self.path(name)))

    def pages(
        self,
        *,
        field_selector: str | None = None,
        limit: int = PAGE_SIZE,
        name: str | None = None,
        below: str | None = None,
        position: str | None = None,
    ) -> Iterator[Record]:
        """The pages of a list, from a ``continue`` position on (NODQ-71)."""
        query = {"limit": str(limit)} | ({"fieldSelector": field_selector} if field_selector else {})
        while True:
            asked = query | ({"continue": position} if position else {})
            page = self._record(Call("GET", self.path(name, below), query=asked))
            yield page
            position = (page.get("metadata") or Record({})).get("continue")
            if not position:
                return

    def list(self, *, field_selector: str | None = None) -> Iterator[Record]:
        """All objects, page by page as they are used.

        Args:
            field_selector: for example ``spec.agent=hello-agent``; the server says which fields it takes.
        """
        for page in self.pages(field_selector=field_selector):
            yield from page["items"]

    def _head(self) -> dict[str, Any]:
        return {"apiVersion": API_VERSION, "kind": self.kind}

    def _send(self, call: Call, within: float | None = None) -> Reply:
        return self._client.transport.send(call, within=within)

    def _record(self, call: Call, within: float | None = None) -> Record:
        return Record(self._send(call, within).json())


class Agents(Resource):
    """Agents: reusable definitions."""

    kind = "Agent"
    plural = "agents"
    # An apply states the outcome, not a change: doing it twice does no more than once.
    _apply_may_repeat = True


class AgentRuns(Resource):
    """Runs: one task each."""

    kind = "AgentRun"
    plural = "agentruns"
    # A run that was deleted in between would be made, and paid for, a second time; apply keeps no key (FLD-16).
    _apply_may_repeat = False

    def cancel(self, name: str) -> Record:
        """Ask an unfinished run to stop; a finished one stays as it is (NOD-045)."""
        # Cancelling twice is cancelling once (NODQ-23).
        return self._record(Call("POST", self.path(name, "cancel"), repeatable=True))

    def send(self, name: str, key: str, text: str) -> Record:
        """Send a message to a run; the same key and text again is delivered once (NOD-180, NOD-183).

        Returns what was accepted: ``turn`` is the number of the turn that the message gets.

        Raises:
            AgentRunFinishedError: the run takes no messages any more.
            MessageKeyConflictError: the key was used for another text; nothing was delivered.
        """
        body = {"payload": text, "messageKey": key}
        return self._record(Call("POST", self.path(name, "messages"), body=body, repeatable=True))

    def resolve(
        self,
        name: str,
        step: str,
        *,
        happened: bool,
        text: str | None = None,
        exit_code: int | None = None,
        request_key: str | None = None,
    ) -> Record:
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
        return self._record(Call("POST", self.path(name, "resolution"), body=body, repeatable=True))

    def steps(self, name: str) -> Iterator[Record]:
        """What the run did, in order (NOD-071)."""
        for page in self.pages(name=name, below="steps", limit=LARGEST_PAGE):
            yield from page["items"]

    def answer(self, name: str) -> str:
        """The run's whole answer (NOD-067).

        Raises:
            AnswerNotReadyError: there is none yet.
        """
        reply = self._send(Call("GET", self.path(name, "answer")))
        content = self._client.transport.fetch(reply) if reply.code >= 300 else reply.content
        return content.decode("utf-8", "replace")


class Budgets(Resource):
    """Budgets: limits of what a project spends on models and compute together."""

    kind = "Budget"
    plural = "budgets"
    _apply_may_repeat = True


class Secrets(Resource):
    """Secrets: values that are written and never read back; ``status.fields`` names them (NOD-465)."""

    kind = "Secret"
    plural = "secrets"
    _apply_may_repeat = True
