"""Routes of the objects of every kind: the same verbs for all of them."""

from functools import partial
from typing import Any

from aws_lambda_powertools.event_handler import Response
from nodus_core.access.door import Place
from nodus_core.kernel.objects import AGENT_RUN
from nodus_core.resources.agentrunlist import is_list, read_list
from nodus_core.resources.deletion import DeleteOptions, read_deletion
from nodus_core.resources.kinds import KINDS, Kind
from nodus_core.resources.manifest import read_manifest
from nodus_core.resources.media_types import APPLY, JSON, MERGE
from nodus_core.resources.status import success

from functions.api.call import Call
from functions.api.gate import Gate, reply
from functions.api.routes.lists import (
    list_objects,
    object_reply,
    outcome_reply,
    outcomes_reply,
    promised,
    required,
)
from functions.api.service import Service


def add(gate: Gate) -> None:
    for kind in KINDS:
        _add_reads(gate, kind)
        _add_changes(gate, kind)
        if kind.is_made_here:
            _add_making(gate, kind)


def _add_reads(gate: Gate, kind: Kind) -> None:
    service, rule, may_read = gate.service, f"/{kind.plural}", kind.permission("read")
    behind = partial(gate.behind, namespaced=kind.namespaced)

    @behind("GET", rule, may_read)
    def list_all(place: Place, call: Call) -> Response[Any]:
        return list_objects(service, place, call, kind.name)

    if kind.namespaced:

        @gate.across(rule, may_read)
        def list_everywhere(place: Place, call: Call) -> Response[Any]:
            return list_objects(service, place, call, kind.name)

    @behind("GET", f"{rule}/<name>", may_read)
    def get(place: Place, call: Call, name: str) -> Response[Any]:
        call.only("resourceVersion")  # what is read is never older than any version
        return object_reply(service, call, service.reading.object(place, kind.name, name))


def _add_changes(gate: Gate, kind: Kind) -> None:
    rule, may_write = f"/{kind.plural}/<name>", kind.permission("write")
    behind = partial(gate.behind, namespaced=kind.namespaced)

    def repeatable(call: Call) -> bool:
        """A PUT states an outcome; so does an apply, but of a run, which it would start anew."""
        return call.method == "PUT" or (call.is_apply and kind.name != AGENT_RUN)

    @behind("PUT", rule, may_write, repeatable=repeatable)
    def update(place: Place, call: Call, name: str) -> Response[Any]:
        service = _service(gate.service, call)
        call.content_type(JSON)
        manifest = read_manifest(call.json(), kind.name, place.project, name)
        return outcome_reply(service, service.verbs[kind.name].update(place, manifest))

    @behind("PATCH", rule, may_write, repeatable=repeatable)
    def change(place: Place, call: Call, name: str) -> Response[Any]:
        service = _service(gate.service, call)
        verbs = service.verbs[kind.name]
        if call.content_type(APPLY, MERGE) == MERGE:
            return outcome_reply(service, verbs.patch(place, name, call.json()))
        manifest = read_manifest(call.yaml(), kind.name, place.project, name)
        return outcome_reply(service, verbs.apply(place, manifest))


def _add_making(gate: Gate, kind: Kind) -> None:
    rule, may_write = f"/{kind.plural}", kind.permission("write")
    behind = partial(gate.behind, namespaced=kind.namespaced)

    @behind("POST", rule, may_write, repeatable=lambda call: call.has_key)
    def create(place: Place, call: Call) -> Response[Any]:
        service = _service(gate.service, call)
        call.content_type(JSON)
        body = call.json()
        if kind.name == AGENT_RUN and is_list(body):
            manifests = read_list(body, place.project)
            promise = required(place, call, manifests)
            return outcomes_reply(service, service.batches.create(place, manifests, promise))
        manifest = read_manifest(body, kind.name, place.project)
        outcome = service.verbs[kind.name].create(place, manifest, promised(place, call, manifest))
        return outcome_reply(service, outcome)

    @behind("DELETE", f"{rule}/<name>", may_write)
    def delete(place: Place, call: Call, name: str) -> Response[Any]:
        service = _service(gate.service, call, "propagationPolicy", "gracePeriodSeconds")
        options = _options(call)
        if options.dry_run:
            service = gate.service.rehearse()
        outcome = service.verbs[kind.name].delete(place, name, options.preconditions)
        if outcome.removed:
            return reply(success(kind.name, name, outcome.object.uid))
        return outcome_reply(service, outcome, code=202)


def _service(service: Service, call: Call, *more: str) -> Service:
    """The use cases of a call: those that store, or with `dryRun` those that only look."""
    call.only("dryRun", *more)
    return service.rehearse() if call.is_rehearsal else service


def _options(call: Call) -> DeleteOptions:
    """What a delete's body asks for; most have none."""
    if not call.body:
        return DeleteOptions()
    call.content_type(JSON)
    return read_deletion(call.json())
