"""What the API says of itself: discovery and OpenAPI, from the wire."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from nodus_core.documents.operations import operations
from nodus_core.resources.kinds import KINDS

from tests.unit.api.rest import Context, Rest

DOCUMENTS = (
    "/api",
    "/apis",
    "/apis/nodus.dev",
    "/apis/nodus.dev/v1",
    "/version",
    "/openapi.json",
    "/openapi/v2",
    "/openapi/v3",
    "/openapi/v3/apis/nodus.dev/v1",
)
LOGINS = "/apis/nodus.dev/v1/logins"
PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"


@pytest.fixture(scope="module")
def rest() -> Rest:
    return Rest()


def read(rest: Rest, path: str, accept: str = "application/json") -> dict[str, Any]:
    """A document without any key, as API Gateway gets it."""
    event = {
        "version": "2.0",
        "rawPath": path,
        "headers": {"accept": accept},
        "requestContext": {"http": {"method": "GET", "path": path}, "stage": "$default"},
        "isBase64Encoded": False,
    }
    return rest.gate.answer(event, Context())


def document(rest: Rest, path: str) -> Any:
    answer = read(rest, path)
    assert answer["statusCode"] == 200
    body = answer["body"]
    return json.loads(base64.b64decode(body) if answer.get("isBase64Encoded") else body)


@pytest.mark.parametrize("path", DOCUMENTS)
def test_every_document_is_read_without_a_key(rest: Rest, path: str) -> None:
    assert document(rest, path)


def test_discovery_names_every_kind_with_its_words(rest: Rest) -> None:
    listed = {each["name"]: each for each in document(rest, "/apis/nodus.dev/v1")["resources"]}
    for kind in KINDS:
        found = listed[kind.plural]
        assert found["kind"] == kind.name
        assert found["namespaced"] is kind.namespaced
        assert tuple(found.get("shortNames", ())) == kind.short_names
        making = {"create", "delete"} if kind.is_made_here else set()
        assert {"get", "list", "watch", "update", "patch"} | making == set(found["verbs"])


def test_what_is_documented_is_what_there_is(rest: Rest) -> None:
    documented = {(each.method, _rule(each.path)) for each in operations() if not each.is_open}
    there = {
        (rule.method, _rule(rule.path.replace("<project>", "{namespace}")))
        for rule in rest.gate.rules
        if rule.permission is not None
    }
    assert documented == there


@pytest.mark.req("NODQ-98")
def test_a_login_is_documented_as_a_call_without_a_credential(rest: Rest) -> None:
    open_calls = {(each.method, each.path) for each in operations() if each.is_open}
    assert open_calls == {("POST", LOGINS)}
    assert open_calls <= {(rule.method, rule.path) for rule in rest.gate.rules if rule.permission is None}
    for path in ("/openapi.json", "/openapi/v3/apis/nodus.dev/v1"):
        whole = document(rest, path)
        call = whole["paths"][LOGINS]["post"]
        assert (whole["security"], call["security"]) == ([{"bearer": []}], [])
        body = call["requestBody"]["content"]["application/json"]["schema"]["$ref"]
        answer = call["responses"]["201"]["content"]["application/json"]["schema"]["$ref"]
        assert [name.rpartition("/")[2] for name in (body, answer)] == [
            "dev.nodus.v1.Login",
            "dev.nodus.v1.LoginAnswer",
        ]
    assert "post" in document(rest, "/openapi/v2")["paths"][LOGINS]
    resources = document(rest, "/apis/nodus.dev/v1")["resources"]
    assert not [each for each in resources if "login" in json.dumps(each).lower()]


@pytest.mark.parametrize("path", ["/openapi.json", "/openapi/v2"])
def test_every_field_of_ours_says_what_it_means(rest: Rest, path: str) -> None:
    whole = document(rest, path)
    schemas = whole["definitions"] if "definitions" in whole else whole["components"]["schemas"]
    silent = [
        f"{name}{field}"
        for name, schema in schemas.items()
        if name.startswith("dev.nodus.v1.")
        for field, said in _fields(schema, "")
        if not str(said.get("description", "")).strip()
    ]
    assert silent == []


def _fields(schema: Any, above: str) -> Iterator[tuple[str, Any]]:
    """Every property of a schema and of those written in it, with its path."""
    for name, field in schema.get("properties", {}).items():
        yield f"{above}.{name}", field
        yield from _fields(field, f"{above}.{name}")
    for word in ("items", "additionalProperties"):
        if isinstance(schema.get(word), dict):
            yield from _fields(schema[word], f"{above}[]")


def _rule(path: str) -> str:
    return path.replace("<", "{").replace(">", "}")


def test_every_reference_of_a_document_leads_somewhere(rest: Rest) -> None:
    for path in ("/openapi.json", "/openapi/v2", "/openapi/v3/apis/nodus.dev/v1"):
        whole = document(rest, path)
        for reference in _references(whole):
            here: Any = whole
            for part in reference.removeprefix("#/").split("/"):
                here = here[part]


def _references(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if "$ref" in value else []
        return own + [each for item in value.values() for each in _references(item)]
    if isinstance(value, list):
        return [each for item in value for each in _references(item)]
    return []


def test_operations_have_names_of_their_own() -> None:
    names = [each.id for each in operations()]
    assert len(names) == len(set(names))


def test_old_kubectl_gets_its_protocol_buffer(rest: Rest) -> None:
    answer = read(rest, "/openapi/v2", accept=PROTOBUF)
    assert answer["isBase64Encoded"]
    body = base64.b64decode(answer["body"])
    assert body.startswith(b"\x0a\x032.0")  # field 1, three bytes: the version
    # Go's mime package takes no @ in a media type.
    types = {name.lower(): value for name, value in answer["headers"].items()}
    assert "@" not in types["content-type"]
