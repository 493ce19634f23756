"""Files of Sandboxes from the wire, done by the daemon's own worker in a folder of the test."""

import base64
from pathlib import Path
from typing import Any

import pytest
from sandboxd.filework.work import handle

from tests.unit.api.rest import Reply, Rest, manifest

FILES = "sandboxes/mine/files"


class Files:
    """A Sandbox whose daemon works in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rest = Rest()
        self.rest.post("sandboxes", manifest("Sandbox", "mine", {}))
        self.rest.world.pass_time(1)
        self.rest.world.sandboxes.answers = self.answer

    def answer(self, kind: str, request: dict[str, Any]) -> dict[str, Any]:
        header = {"kind": kind, **request, "path": str(self.folder / request["path"])}
        fields, data = handle(header, base64.b64decode(request.get("content", "")))
        if "refused" in fields:
            return {"state": "failed", "reason": fields["refused"], "message": fields["message"]}
        read = {"content": base64.b64encode(data).decode()} if data else {}
        return {"state": "exited", **fields["fields"], **read}

    def get(self, path: str, **query: str) -> Reply:
        return self.rest.get(FILES, query={"path": path, **query})


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@pytest.mark.req("NOD-425")
def test_a_folder_is_listed_page_by_page(files: Files) -> None:
    for name in ("b", "a", "c"):
        (files.folder / name).write_text(name)
    first = files.get(".", list="true", limit="2")
    assert (first.code, first.json["kind"]) == (200, "SandboxFileList")
    assert [item["name"] for item in first.json["items"]] == ["a", "b"]
    assert {"type", "size", "mode", "modifiedAt", "etag"} < first.json["items"][0].keys()
    rest = files.get(".", **{"list": "true", "limit": "2", "continue": first.json["metadata"]["continue"]})
    assert [item["name"] for item in rest.json["items"]] == ["c"]
    assert "continue" not in rest.json["metadata"]


@pytest.mark.req("NOD-429")
def test_a_stopped_machine_is_refused_with_the_remedy_and_stays_stopped(files: Files) -> None:
    files.rest.post("sandboxes/mine/stop")
    files.rest.world.settle()
    started = len(files.rest.world.sandboxes.daemons)
    refused = files.get(".", list="true")
    assert (refused.code, refused.json["reason"]) == (409, "SandboxNotRunning")
    assert "nodus start sandbox/mine" in refused.json["message"]
    files.rest.world.settle()
    assert len(files.rest.world.sandboxes.daemons) == started
    assert files.rest.get("sandboxes/mine").json["status"]["phase"] == "Paused"


def test_what_is_no_path_or_is_not_there_is_refused(files: Files) -> None:
    for query in ({}, {"path": ""}, {"path": "a\0b"}, {"path": "a" * 5000}):
        assert files.rest.get(FILES, query={"list": "true", **query}).code == 400
    assert files.get("none", list="true").json["reason"] == "NotFound"
    assert files.get(".", **{"list": "true", "continue": "!"}).code == 400
    assert files.rest.get("sandboxes/none/files", query={"path": ".", "list": "true"}).code == 404


@pytest.mark.parametrize(
    "answer", [{}, {"state": "exited"}, {"state": "exited", "entries": [{"name": 1}]}, []]
)
def test_a_daemon_that_lies_is_not_believed(files: Files, answer: Any) -> None:
    files.rest.world.sandboxes.answers = lambda kind, request: answer
    refused = files.get(".", list="true")
    assert (refused.code, refused.json["reason"]) == (503, "ServiceUnavailable")
