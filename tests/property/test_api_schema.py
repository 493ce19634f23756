"""Whatever is sent to the API, its answers are those that its own document promises."""

from __future__ import annotations

import json
import os

import schemathesis
from hypothesis import HealthCheck, settings
from nodus_core.documents import openapi3
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.property.served import Served
from tests.unit.api.rest import Rest

CASES = int(os.environ.get("NODUS_API_CASES", "4"))
"""For each operation, beside what is tried of each by rule; `make fuzz` tries 5,000 in all."""

CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
)


def world() -> Rest:
    rest = Rest()
    rest.agent("a", system="x")
    rest.run("r", agent="a")
    return rest


REST = world()
DOCUMENT = json.loads(json.dumps(openapi3.document("test")))
API = schemathesis.openapi.from_wsgi("/openapi.json", Served(REST))


@API.parametrize()
@settings(
    max_examples=CASES,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
def test_every_answer_is_one_that_the_document_promises(case: schemathesis.Case) -> None:
    case.headers = {**(case.headers or {}), "Authorization": f"Bearer {REST.key}"}
    if "namespace" in (case.path_parameters or {}):
        case.path_parameters["namespace"] = "web"
    # A watch answers a line for each event, which no schema of one JSON value describes.
    (case.query or {}).pop("watch", None)
    case.call_and_validate(checks=list(CHECKS))
