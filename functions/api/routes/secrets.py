"""Routes of Secrets: values go in and never come out."""

from typing import Any

from aws_lambda_powertools.event_handler import Response
from nodus_core.access.door import Place
from nodus_core.access.permissions import SECRETS_READ, SECRETS_WRITE
from nodus_core.resources.manifest import read_manifest
from nodus_core.resources.status import success

from functions.api.call import APPLY, JSON, MERGE, Call
from functions.api.gate import Gate, reply
from functions.api.routes.lists import list_objects, outcome_reply, promised

KIND = "Secret"


def add(gate: Gate) -> None:
    service = gate.service

    @gate.behind("GET", "/secrets", SECRETS_READ)
    def list_secrets(place: Place, call: Call) -> Response[Any]:
        return list_objects(service, place, call, KIND)

    @gate.behind("POST", "/secrets", SECRETS_WRITE)
    def create_secret(place: Place, call: Call) -> Response[Any]:
        call.only()
        call.content_type(JSON)
        manifest = read_manifest(call.json(), KIND, place.project)
        return outcome_reply(
            service, service.secrets.create(place, manifest, promised(place, call, manifest))
        )

    @gate.behind("GET", "/secrets/<name>", SECRETS_READ)
    def get_secret(place: Place, call: Call, name: str) -> Response[Any]:
        call.only()
        return reply(service.reading.object(place, KIND, name))

    @gate.behind("PATCH", "/secrets/<name>", SECRETS_WRITE)
    def change_secret(place: Place, call: Call, name: str) -> Response[Any]:
        call.only()
        if call.content_type(APPLY, MERGE) == MERGE:
            return outcome_reply(service, service.secrets.patch(place, name, call.json()))
        manifest = read_manifest(call.yaml(), KIND, place.project, name)
        return outcome_reply(service, service.secrets.apply(place, manifest))

    @gate.behind("DELETE", "/secrets/<name>", SECRETS_WRITE)
    def delete_secret(place: Place, call: Call, name: str) -> Response[Any]:
        call.only()
        gone = service.secrets.delete(place, name)
        return reply(success(KIND, name, gone.uid))
