"""Sources in the deployed cloud, from bare repositories in the operator's folder: which commit, which files, no more."""

import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.repositories import PROGRAM, SUBMODULE, Bare, Content, link
from tests.integration.runs.asked import requests
from tests.integration.runs.machine import room
from tests.integration.runs.person import Person, Run, in_turn, manifest, names
from tests.integration.waiting import until

pytestmark = pytest.mark.timeout(180, func_only=True)

FILES: dict[str, Content] = {
    "readme.txt": "from the repository\n",
    "tool.sh": (PROGRAM, b"#!/bin/sh\necho it runs\n"),
    "docs": {"up.txt": link("../readme.txt"), "deep": {"page.txt": "page\n"}},
    "vendored": (SUBMODULE, b"1" * 40),
}
LOOK = "pwd; ls -A; cat readme.txt docs/up.txt; ./tool.sh; git status 2>&1 | head -1; find / -name .git 2>/dev/null | head"


class Code:
    """A repository of its own that the project is connected to."""

    def __init__(self, person: Person) -> None:
        self.person = person
        self.name = f"acme/site-{secrets.token_hex(4)}"
        self.bare = Bare(person.cloud.state.repositories, self.name)

    def connect(self) -> None:
        body = manifest(
            "Connection", self.connection, {"type": "Local", "local": {"repositories": [self.name]}}
        )
        made = self.person.call("POST", "connections", body)
        assert made.status_code == 201, made.text
        assert made.json()["status"]["conditions"][0]["status"] == "True"

    @property
    def connection(self) -> str:
        return self.name.replace("/", "-")

    def agent(self, ref: str | None = None, **spec: Any) -> str:
        """An agent whose source it is; its name."""
        git = {"repo": self.name, **({"ref": ref} if ref else {})}
        name = f"coder-{secrets.token_hex(4)}"
        self.person.agent(name, source={"git": git}, workingDir="/work/x", **spec)
        return name


@pytest.fixture
def code(person: Person) -> Iterator[Code]:
    made = Code(person)
    made.connect()
    yield made
    person.call("DELETE", f"connections/{made.connection}")


def copied(run: Run) -> str:
    """The commit of a run whose source is copied, which step and status both tell."""
    step = run.reaches("source", "Completed")
    commit = run.status()["source"]["commit"]
    assert step["preview"].startswith(f"{commit}:")
    return commit


@pytest.mark.req("NOD-154", "NOD-155", "NOD-156", "NOD-157", "NOD-158", "NOD-017")
def test_the_files_are_there_before_the_setup_and_nothing_of_git(code: Code) -> None:
    commit = code.bare.push(FILES)
    run = code.person.start(
        code.agent(setup="cat readme.txt > prepared.txt"), in_turn(LOOK, "cat prepared.txt")
    )
    run.succeeded()
    assert names(run.steps())[:4] == ["sandbox", "source", "setup", "model.1"]
    assert copied(run) == commit
    said = run.step("tool.run_command.1")["preview"].splitlines()
    assert said[0] == "/work/x"
    assert said[1:6] == ["docs", "prepared.txt", "readme.txt", "tool.sh", "vendored"]
    assert said[6:9] == ["from the repository", "from the repository", "it runs"]
    assert not any(line.endswith("/.git") for line in said)
    assert run.answer().startswith("from the repository")


@pytest.mark.req("NOD-152")
def test_a_branch_a_tag_and_a_commit(code: Code) -> None:
    first = code.bare.push({"a": "1"})
    second = code.bare.push({"a": "2"})
    other = code.bare.push({"a": "3"}, "feature/x")
    code.bare.tag("v1", first, annotated=True)
    for ref, commit in (("feature/x", other), ("v1", first), (second, second), (None, second)):
        run = code.person.start(code.agent(ref), in_turn("cat a"))
        run.succeeded()
        assert (copied(run), run.status()["source"].get("ref")) == (commit, ref)


@pytest.mark.req("NOD-153", "NOD-165", "NOD-036")
def test_a_push_changes_nothing_also_in_the_next_sandbox(code: Code) -> None:
    first = code.bare.push(FILES)
    agent = code.agent(setup="echo once >> setups.txt")
    run = code.person.start(agent, in_turn("cat readme.txt setups.txt"), keepAlive=True)
    run.waits("MessageWait")
    assert copied(run) == first
    code.bare.push({**FILES, "readme.txt": "pushed later\n"})
    code.person.call("DELETE", f"connections/{code.connection}")
    assert run.say(in_turn("cat readme.txt setups.txt"), "one").status_code == 202
    until(run.status, lambda status: len(status["turns"]) == 2 and status.get("reason") == "MessageWait")
    assert names(run.steps()).count("source") == 1
    room(code.person.cloud, run.status()["sandbox"]["name"]).kill()
    assert run.say(in_turn("cat readme.txt setups.txt"), "two").status_code == 202
    until(run.status, lambda status: len(status["turns"]) == 3 and status.get("reason") == "MessageWait")
    own = room(code.person.cloud, run.status()["sandbox"]["name"])
    assert (own.read("readme.txt"), own.read("setups.txt")) == ("from the repository\n", "once\n")
    assert [name for name in names(run.steps()) if name.startswith(("source", "setup"))] == [
        *("source", "setup", "source.2", "setup.2")
    ]
    assert run.status()["source"]["commit"] == first


@pytest.mark.req("NOD-151", "NOD-044")
def test_a_repository_that_is_not_connected_or_not_there(code: Code) -> None:
    person = code.person
    person.agent("unconnected", source={"git": {"repo": "acme/nowhere"}})
    body = manifest("AgentRun", f"un-{secrets.token_hex(4)}", {"agent": "unconnected", "input": "Hello."})
    refused = person.call("POST", "agentruns", body)
    assert (refused.status_code, refused.json()["details"]["kind"]) == (404, "Connection")
    assert "acme/nowhere" in refused.json()["message"]

    code.bare.push(FILES)
    run = person.start(code.agent("gone"), "Say hello.")
    status = run.ended()
    assert (status["phase"], status["reason"], status["cost"]["totalUSD"]) == ("Failed", "SourceFailed", "0")
    assert "no branch and no tag 'gone'" in status["message"]
    assert names(run.steps()) == ["sandbox", "source"]
    assert requests(person.cloud, run.mark) == []
    until(room(person.cloud, status["sandbox"]["name"]).is_gone, bool)


@pytest.mark.req("FLD-15")
@pytest.mark.parametrize(
    ("files", "entry"),
    [
        ({"d": link("/tmp"), "fine": "x"}, "'d' is a link to '/tmp'"),
        ({"a": {"..": {"..": {"out.txt": "x"}}}}, "'a/..'"),
        ({".git": {"hooks": "x"}}, "'.git'"),
        ({"a/../../b": "x"}, "a/../../b"),
    ],
    ids=["link", "up", "git", "slash"],
)
def test_a_hostile_repository_is_refused_by_its_entry(
    code: Code, files: dict[str, Content], entry: str
) -> None:
    code.bare.push(files)
    run = code.person.start(code.agent(), "Say hello.")
    status = run.ended()
    assert (status["phase"], status["reason"]) == ("Failed", "SourceFailed")
    assert entry in status["message"]
    assert requests(code.person.cloud, run.mark) == []


@pytest.mark.req("NOD-156", "FLD-14")
def test_no_token_is_anywhere(person: Person) -> None:
    """A Connection with a token that its host, which the operator has not allowed, never sees."""
    token, name = f"plum-{secrets.token_hex(8)}-KITE", f"deploy-{secrets.token_hex(4)}"
    person.call("POST", "secrets", manifest("Secret", name, {"data": {"TOKEN": token}}))
    spec = {"url": "https://git.example.com", "repositories": [f"acme/{name}"], "tokenSecret": name}
    made = person.call("POST", "connections", manifest("Connection", name, {"type": "Git", "git": spec}))
    assert made.json()["status"]["conditions"][0]["reason"] == "HostNotAllowed"
    person.agent(name, source={"git": {"repo": f"acme/{name}"}})
    refused = person.call("POST", "agentruns", manifest("AgentRun", name, {"agent": name, "input": "Hello."}))
    assert (refused.status_code, refused.json()["reason"]) == (422, "Invalid")
    assert f"Connection '{name}' cannot be used" in refused.json()["message"]
    assert token not in refused.text + made.text
    for file in _written(person.cloud.state.logs):
        assert token.encode() not in file.read_bytes(), file


def _written(folder: Path) -> Iterator[Path]:
    for top, _, files in os.walk(folder):
        yield from (Path(top) / file for file in files)
