"""Routes of what the API says of itself. They need no key: nothing in them is anybody's."""

import json
from functools import cache
from typing import Any

from aws_lambda_powertools.event_handler import Response
from nodus_core import RELEASE
from nodus_core.documents import discovery, openapi2, openapi3, swagger_wire
from nodus_core.kernel.ids import digest
from nodus_core.resources.media_types import JSON

from functions.api.gate import Gate, reply

PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
CACHED = {"Cache-Control": "public, max-age=300"}


def add(gate: Gate) -> None:
    for path, document in (
        ("/api", discovery.core_versions),
        ("/apis", discovery.groups),
        (f"/apis/{discovery.GROUP}", discovery.group),
        (f"/apis/{discovery.API_VERSION}", discovery.resources),
        ("/version", lambda: discovery.version(RELEASE)),
        ("/openapi/v3", lambda: openapi3.index(digest(_openapi3("3.0.0")))),
    ):
        gate.open("GET", path)(lambda document=document: reply(document()))
    gate.open("GET", f"/{openapi3.PATH}")(lambda: _text(_openapi3("3.0.0")))
    gate.open("GET", "/openapi.json")(lambda: _text(_openapi3("3.1.0")))
    gate.open("GET", "/openapi/v2")(lambda: _swagger(gate.call().headers.get("accept", "")))


def _swagger(accept: str) -> Response[Any]:
    """Swagger as JSON, or as the protocol buffer for kubectl, which asks for nothing else."""
    if "protobuf" in accept:
        return Response(200, PROTOBUF, _swagger_wire(), headers=dict(CACHED))
    return _text(json.dumps(_openapi2()))


def _text(document: str) -> Response[Any]:
    return Response(200, JSON, document, headers=dict(CACHED))


@cache
def _openapi3(version: str) -> str:
    return json.dumps(openapi3.document(RELEASE, version))


@cache
def _openapi2() -> openapi2.Document:
    return openapi2.document(RELEASE)


@cache
def _swagger_wire() -> bytes:
    return swagger_wire.encoded(_openapi2())
