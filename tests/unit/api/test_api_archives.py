"""Archives as sources: what an agent may say of one, and whether the operator lets its runs have it."""

import json
from typing import Any

import pytest
from nodus_core.conversations.sources import Allowed

from tests.unit.api.rest import Rest

URL = "https://downloads.example.com/site-1.0.tar.gz?signed=no"
DIGEST = "0123456789abcdef" * 4


@pytest.mark.req("NOD-019", "NOD-151", "FLD-13")
@pytest.mark.parametrize(
    ("source", "fields"),
    [
        ({}, ["spec.source.git"]),
        ({"git": {"repo": "a/b"}, "archive": {"url": URL}}, ["spec.source.archive"]),
        ({"archive": {}}, ["spec.source.archive.url"]),
        ({"archive": {"url": "http://downloads.example.com/a"}}, ["spec.source.archive.url"]),
        ({"archive": {"url": "file:///etc/passwd"}}, ["spec.source.archive.url"]),
        ({"archive": {"url": "https://me:word@downloads.example.com/a"}}, ["spec.source.archive.url"]),
        ({"archive": {"url": "https://169.254.169.254/a"}}, ["spec.source.archive.url"]),
        ({"archive": {"url": "https://0x7f.1/a"}}, ["spec.source.archive.url"]),
        ({"archive": {"url": f"{URL}#part"}}, ["spec.source.archive.url"]),
        ({"archive": {"url": URL, "sha256": DIGEST.upper()}}, ["spec.source.archive.sha256"]),
        ({"archive": {"url": URL, "sha256": DIGEST[:40]}}, ["spec.source.archive.sha256"]),
        ({"archive": {"url": URL, "stripComponents": -1}}, ["spec.source.archive.stripComponents"]),
        ({"archive": {"url": URL, "stripComponents": "1"}}, ["spec.source.archive.stripComponents"]),
        ({"archive": {"url": URL, "md5": "x"}}, ["spec.source.archive.md5"]),
    ],
)
def test_what_an_archive_must_say(source: dict[str, Any], fields: list[str]) -> None:
    refused = Rest().agent(source=source)
    assert (refused.code, refused.json["reason"], refused.fields) == (422, "Invalid", fields)
    assert "me:word" not in refused.json["message"]


@pytest.mark.req("NOD-019", "NOD-036")
def test_a_run_pins_what_its_agent_says_of_an_archive() -> None:
    made = Rest(allowed=Allowed(archive_hosts=frozenset({"downloads.example.com"})))
    made.agent(source={"archive": {"url": URL, "sha256": DIGEST, "stripComponents": 1}})
    assert made.run("r").code == 201
    head = made.world.outside.conversation(made.get("agentruns/r").json["metadata"]["uid"])
    assert head is not None
    assert json.loads(head.context.text)["source"] == {"url": URL, "sha256": DIGEST, "strip": 1}  # type: ignore[union-attr]
    assert not made.world.downloads.asked


@pytest.mark.req("NOD-151", "NOD-044")
def test_an_archive_that_the_operator_has_not_allowed_refuses_the_run() -> None:
    made = Rest(allowed=Allowed(archive_hosts=frozenset({"*.example.org"})))
    made.agent(source={"archive": {"url": URL}})
    stored = made.commits
    refused = made.run("r")
    assert (refused.code, refused.json["reason"], refused.fields) == (422, "Invalid", ["spec.agent"])
    assert "an archive at downloads.example.com" in refused.json["message"]
    assert made.commits == stored
    assert ready(made) == ("False", "HostNotAllowed")


def ready(made: Rest) -> tuple[str, str]:
    (condition,) = made.get("agents/hello-agent").json["status"]["conditions"]
    return condition["status"], condition["reason"]


@pytest.mark.req("NOD-018")
@pytest.mark.parametrize(
    ("state_dir", "source", "why"),
    [
        ("/workspace", True, None),
        ("/workspace/kept", False, None),
        ("/workspace/kept", True, "must be the working folder, /workspace, where a source fills that"),
        ("/data", False, "must be the working folder, /workspace, or a folder below it"),
    ],
)
def test_what_is_saved_beside_a_source_is_the_working_folder(
    state_dir: str, source: bool, why: str | None
) -> None:
    made = Rest(allowed=Allowed(archive_hosts=frozenset({"*"})))
    more = {"source": {"archive": {"url": URL}}} if source else {}
    made.agent(continuity={"mode": "Snapshotted", "stateDir": state_dir}, **more)
    begun = made.run("r")
    if why is None:
        assert (begun.code, ready(made)) == (201, ("True", "Accepted"))
        return
    assert (begun.code, begun.json["reason"]) == (422, "NotAvailable")
    assert f"spec.continuity.stateDir {why}" in begun.json["details"]["causes"][0]["message"]
    assert ready(made) == ("False", "NotAvailable")
