"""Connections: what they may say, whether they can be used, and which one a run takes."""

import json
from typing import Any

import pytest
from nodus_core.conversations.sources import Allowed

from tests.unit.api.rest import Reply, Rest, manifest

GITHUB = {"type": "GitHub", "github": {"installationId": 7, "repositories": ["acme/site"]}}
ALLOWED = Allowed(app="4711", git_hosts=frozenset({"git.example.com"}), folder="/srv/git")
READY = ("True", "Accepted")


def rest(allowed: Allowed = ALLOWED) -> Rest:
    made = Rest(allowed=allowed)
    made.agent(source={"git": {"repo": "acme/site", "ref": "main"}})
    return made


def connect(rest: Rest, name: str = "code", /, **spec: Any) -> Reply:
    return rest.post("connections", manifest("Connection", name, spec or GITHUB))


def ready(rest: Rest, name: str = "code") -> tuple[str, str]:
    (condition,) = rest.get(f"connections/{name}").json["status"]["conditions"]
    assert condition["type"] == "Ready"
    return condition["status"], condition["reason"]


@pytest.mark.req("NOD-151", "NODQ-102", "FLD-13")
@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        ({"type": "GitLab"}, ["spec.type"]),
        ({"type": "GitHub"}, ["spec.github"]),
        ({"type": "GitHub", "github": {}}, ["spec.github.repositories"]),
        (
            {"type": "GitHub", "github": {"installationId": 1, "tokenSecret": "s"}},
            ["spec.github.tokenSecret"],
        ),
        ({"type": "GitHub", "github": {"installationId": 1, "tokenField": "T"}}, ["spec.github.tokenField"]),
        (
            {"type": "Git", "git": {"url": "http://git.example.com", "repositories": ["a/b"]}},
            ["spec.git.url"],
        ),
        ({"type": "Git", "git": {"url": "https://10.0.0.1", "repositories": ["a/b"]}}, ["spec.git.url"]),
        (
            {"type": "Git", "git": {"url": "https://u:p@git.example.com", "repositories": ["a/b"]}},
            ["spec.git.url"],
        ),
        ({"type": "Git", "git": {"url": "https://git.example.com"}}, ["spec.git.repositories"]),
        ({"type": "Local", "local": {"repositories": []}}, ["spec.local.repositories"]),
        ({"type": "Local", "local": {"repositories": ["../x"]}}, ["spec.local.repositories[0]"]),
        ({**GITHUB, "local": {"repositories": ["a/b"]}}, ["spec.local"]),
    ],
)
def test_what_a_connection_must_say(spec: dict[str, Any], fields: list[str]) -> None:
    made = rest()
    stored = made.commits
    refused = made.post("connections", manifest("Connection", "code", spec))
    assert (refused.code, refused.fields) == (422, fields)
    assert made.commits == stored


@pytest.mark.req("NOD-151", "NODQ-102", "NOD-124")
def test_whether_it_can_be_used_follows_what_is_there() -> None:
    made = rest()
    connect(made)
    assert ready(made) == READY
    token = {"type": "GitHub", "github": {"tokenSecret": "deploy"}}
    connect(made, "token", **token)
    assert ready(made, "token") == ("False", "SecretMissing")
    made.post("secrets", manifest("Secret", "deploy", {"data": {"A": "plum-9f31-kite", "B": "x"}}))
    assert ready(made, "token") == ("False", "SecretFieldMissing")
    made.patch("connections/token", {"spec": {"github": {"tokenField": "A"}}})
    assert ready(made, "token") == READY
    assert "plum-9f31-kite" not in made.get("connections").text
    connect(made, "host", type="Git", git={"url": "https://git.example.com", "repositories": ["a/b"]})
    connect(made, "other", type="Git", git={"url": "https://other.example.com", "repositories": ["a/b"]})
    connect(made, "here", type="Local", local={"repositories": ["a/b"]})
    assert [ready(made, name)[1] for name in ("host", "other", "here")] == [
        "Accepted",
        "HostNotAllowed",
        "Accepted",
    ]
    listed = {
        item["metadata"]["name"]: item["status"]["conditions"][0]["reason"]
        for item in made.get("connections").json["items"]
    }
    assert listed == {name: ready(made, name)[1] for name in listed}
    assert not made.world.repositories.asked


@pytest.mark.req("NOD-151")
def test_without_the_operators_word_nothing_is_read() -> None:
    made = rest(Allowed())
    connect(made)
    connect(made, "here", type="Local", local={"repositories": ["a/b"]})
    assert [ready(made, name)[1] for name in ("code", "here")] == ["GitHubAppMissing", "FolderNotAllowed"]


@pytest.mark.req("NOD-151", "NOD-044")
def test_a_repository_that_is_not_connected_refuses_the_run() -> None:
    made = rest()
    connect(made, type="Local", local={"repositories": ["acme/other"]})
    stored = made.commits
    refused = made.run("r")
    assert (refused.code, refused.json["reason"], refused.fields) == (404, "NotFound", ["spec.agent"])
    assert refused.json["details"]["kind"] == "Connection"
    assert "acme/site" in refused.json["message"]
    assert "no Connection of this project reads it" in refused.json["message"]
    assert made.commits == stored
    assert made.world.payloads.objects == {}


@pytest.mark.req("NOD-151", "NOD-036")
def test_a_run_pins_the_connection_that_names_its_repository() -> None:
    made = rest()
    connect(made, "all", type="GitHub", github={"installationId": 8})
    connect(made, "lower", type="GitHub", github={"installationId": 7, "repositories": ["Acme/Site"]})
    assert made.run("r").code == 201
    head = made.world.outside.conversation(made.get("agentruns/r").json["metadata"]["uid"])
    assert head is not None
    assert json.loads(head.context.text)["source"] == {
        "repo": "acme/site",
        "ref": "main",
        "connection": "lower",
    }  # type: ignore[union-attr]
    connect(made, "again", type="Local", local={"repositories": ["acme/site"]})
    refused = made.run("r2")
    assert (refused.code, refused.json["reason"]) == (422, "Invalid")
    assert "several Connections read (again, lower)" in refused.json["message"]


@pytest.mark.req("NOD-151")
def test_a_connection_that_cannot_be_used_refuses_the_run_by_its_name() -> None:
    made = rest()
    connect(made, type="GitHub", github={"tokenSecret": "deploy", "repositories": ["acme/site"]})
    refused = made.run("r")
    assert (refused.code, refused.json["reason"], refused.fields) == (422, "Invalid", ["spec.agent"])
    assert "Connection 'code' cannot be used: There is no Secret 'deploy'" in refused.json["message"]
