"""Whatever is sent to the deployed API, through its gateway, its answers are those that its document promises.

A few cases for each operation; `make fuzz` sends thousands to the same code in memory.
"""

from __future__ import annotations

import json
import os

import nodus
import pytest
import schemathesis
import yaml
from hypothesis import HealthCheck, assume, settings
from nodus_core.documents import openapi3
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from localstack.testing import TestCloud

CASES = int(os.environ.get("NODUS_DEPLOYED_CASES", "1"))
"""For each operation."""

PROJECT = "generated"
"""A project of these cases: nothing that other tests use is touched."""

CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
)

API = schemathesis.openapi.from_dict(json.loads(json.dumps(openapi3.document("test"))))


@pytest.fixture(scope="module")
def context(local_cloud: TestCloud) -> dict[str, str]:
    found = yaml.safe_load(local_cloud.configuration.read_text())["contexts"]["local"]
    with nodus.Client(server=found["server"], token=found["token"]) as client:
        client.projects.apply({"metadata": {"name": PROJECT}, "spec": {}})
    return found


@API.parametrize()
@settings(max_examples=CASES, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_answer_is_one_that_the_document_promises(
    case: schemathesis.Case, context: dict[str, str]
) -> None:
    case.headers = {**(case.headers or {}), "Authorization": f"Bearer {context['token']}"}
    if "namespace" in (case.path_parameters or {}):
        case.path_parameters["namespace"] = PROJECT
    # Clients and gateways take such segments away before any API sees them; the local cloud refuses them.
    assume({".", ".."}.isdisjoint(map(str, (case.path_parameters or {}).values())))
    # A watch answers a line for each event, which no schema of one JSON value describes.
    (case.query or {}).pop("watch", None)
    case.call_and_validate(base_url=context["server"], checks=list(CHECKS))
