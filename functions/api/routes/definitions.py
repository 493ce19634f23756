"""Routes of the kinds that only say something: agents, budgets, Secrets."""

from typing import Any

from aws_lambda_powertools.event_handler import Response
from nodus_core.access.door import Place
from nodus_core.conversations.definitions import Definitions
from nodus_core.resources.kinds import BY_NAME
from nodus_core.resources.manifest import read_manifest
from nodus_core.resources.status import success

from functions.api.call import APPLY, JSON, MERGE, Call
from functions.api.gate import Gate, reply
from functions.api.routes.lists import list_objects, outcome_reply, promised


def add(gate: Gate) -> None:
    service = gate.service
    for kind, cases in (("Agent", service.agents), ("Budget", service.budgets), ("Secret", service.secrets)):
        _add_kind(gate, kind, cases)


def _add_kind(gate: Gate, kind: str, cases: Definitions) -> None:
    service, plural = gate.service, BY_NAME[kind].plural
    may_read, may_write = BY_NAME[kind].permission("read"), BY_NAME[kind].permission("write")

    @gate.behind("GET", f"/{plural}", may_read)
    def list_all(place: Place, call: Call) -> Response[Any]:
        return list_objects(service, place, call, kind)

    @gate.behind("POST", f"/{plural}", may_write, repeatable=lambda call: call.has_key)
    def create(place: Place, call: Call) -> Response[Any]:
        call.only()
        call.content_type(JSON)
        manifest = read_manifest(call.json(), kind, place.project)
        return outcome_reply(service, cases.create(place, manifest, promised(place, call, manifest)))

    @gate.behind("GET", f"/{plural}/<name>", may_read)
    def get(place: Place, call: Call, name: str) -> Response[Any]:
        call.only()
        return reply(service.reading.object(place, kind, name))

    @gate.behind("PATCH", f"/{plural}/<name>", may_write, repeatable=lambda call: call.is_apply)
    def change(place: Place, call: Call, name: str) -> Response[Any]:
        call.only()
        if call.content_type(APPLY, MERGE) == MERGE:
            return outcome_reply(service, cases.patch(place, name, call.json()))
        manifest = read_manifest(call.yaml(), kind, place.project, name)
        return outcome_reply(service, cases.apply(place, manifest))

    @gate.behind("DELETE", f"/{plural}/<name>", may_write)
    def delete(place: Place, call: Call, name: str) -> Response[Any]:
        call.only()
        gone = cases.delete(place, name)
        return reply(success(kind, name, gone.uid))
