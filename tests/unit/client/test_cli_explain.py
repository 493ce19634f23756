"""`nodus explain`: the server's own schema, for people."""

from __future__ import annotations

from typing import Any

import pytest
from nodus._kinds import AGENT_RUN
from nodus.cli.schemas import Schemas
from nodus_core.documents import openapi3
from nodus_core.resources.kinds import KINDS

from tests.unit.client.conftest import Cli
from tests.unit.client.fake_server import FakeServer

PATH = "/openapi/v3/apis/nodus.dev/v1"


def ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


DOCUMENT: dict[str, Any] = {
    "openapi": "3.0.0",
    "components": {
        "schemas": {
            "Run": {
                "type": "object",
                "description": "One task with an agent.",
                "required": ["spec"],
                "properties": {
                    "spec": {"allOf": [ref("RunSpec")], "description": "What is wanted."},
                    "status": {"type": "object"},
                },
                "x-kubernetes-group-version-kind": [
                    {"group": "nodus.dev", "version": "v1", "kind": "AgentRun"}
                ],
            },
            "RunSpec": {
                "type": "object",
                "description": "spec of a run as written.",
                "required": ["agent"],
                "properties": {
                    "agent": {"type": "string", "description": "Which agent \x1b[31mworks."},
                    "parallelism": {"type": "integer", "minimum": 0, "maximum": 9},
                    "dependsOn": {"type": "array", "maxItems": 100, "items": {"type": "string"}},
                    "env": {"type": "array", "items": ref("Entry")},
                    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                    "children": {"type": "array", "items": ref("RunSpec")},
                    "size": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
                },
            },
            "Entry": {
                "type": "object",
                "properties": {"name": {"type": "string", "enum": ["a", "b"]}},
            },
        }
    },
}


@pytest.fixture
def described(cli: Cli, server: FakeServer) -> Cli:
    server.documents[PATH] = DOCUMENT
    return cli


def test_a_kind(described: Cli) -> None:
    assert described("explain", "ar").out == (
        "KIND:     AgentRun\n"
        "VERSION:  nodus.dev/v1\n"
        "\n"
        "DESCRIPTION:\n"
        "  One task with an agent.\n"
        "\n"
        "FIELDS:\n"
        "  spec <Object> required\n"
        "      What is wanted.\n"
        "  status <Object>\n"
    )


def test_the_fields_of_a_field(described: Cli) -> None:
    lines = described("explain", "agentruns.spec").out.splitlines()
    assert lines[:6] == [
        "KIND:     AgentRun",
        "VERSION:  nodus.dev/v1",
        "FIELD:    spec <Object>",
        "",
        "DESCRIPTION:",
        "  What is wanted.",
    ]
    assert lines[7:] == [
        "FIELDS:",
        "  agent <string> required",
        "      Which agent \\x1b[31mworks.",
        "  parallelism <integer>",
        "      (at least 0; at most 9)",
        "  dependsOn <[]string>",
        "      (entries: at most 100)",
        "  env <[]Object>",
        "  labels <map[string]string>",
        "  children <[]Object>",
        "  size <integer or string>",
    ]


def test_a_field_of_entries_of_a_list(described: Cli) -> None:
    out = described("explain", "ar.spec.env.name").out
    assert "FIELD:    name <string>\n\nDESCRIPTION:\n  (one of a, b)\n" in out
    assert "FIELDS:" not in out


def test_everything_below_even_of_what_refers_to_itself(described: Cli) -> None:
    lines = described("explain", "ar", "--recursive").out.splitlines()
    assert "    env <[]Object>" in lines
    assert "      name <string>" in lines
    assert "        agent <string> required" in lines, "the children of children"


@pytest.mark.parametrize(
    ("path", "says"),
    [
        (
            "ar.spec.agnet",
            "agentrun.spec has no field 'agnet'; did you mean 'agent'? Fields: agent, parallelism",
        ),
        ("ar.spec.agent.x", "agentrun.spec.agent has no field 'x' Fields: none"),
        ("nope", "Error (UnknownKind): no kind 'nope'"),
        ("budget", "Error (NotDescribed): the server does not describe budgets"),
    ],
)
def test_what_is_not_there_teaches(described: Cli, path: str, says: str) -> None:
    output = described("explain", path)
    assert (output.code, output.out, says in output.err) == (1, "", True), output.err


def test_a_server_that_describes_nothing_says_so(cli: Cli, server: FakeServer) -> None:
    assert "Error (NotFound)" in cli("explain", "ar").err


def test_words_of_a_field_go_before_those_of_what_it_refers_to() -> None:
    schemas = Schemas(DOCUMENT)
    spec = schemas.at(schemas.of_kind(AGENT_RUN), ["spec"], "agentrun")
    assert schemas.whole(spec)["description"] == "What is wanted."


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_server_describes_every_kind_and_each_of_its_fields(
    cli: Cli, server: FakeServer, kind: Any
) -> None:
    server.documents[PATH] = openapi3.document("0.1.0", "3.0.0")
    output = cli("explain", f"{kind.plural}.spec", "--recursive")
    assert (output.code, output.err) == (0, "")
    fields = {line.split()[0] for line in output.out.splitlines() if line.startswith("  ") and "<" in line}
    assert fields >= {field.alias or name for name, field in kind.spec.model_fields.items()}
