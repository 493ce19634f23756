"""Files of Sandboxes from the wire, done by the daemon's own worker in a folder of the test."""

import base64
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from nodus_core.resources.sandbox_file import MOST_FILE_BYTES
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
        """As the daemon's desk does it (tests/unit/sandboxd), without its processes."""
        if kind == "fetch":
            content = self.contents.get(request["url"], b"")
            if sha256(content).hexdigest() != request["sha256"]:
                return {"state": "failed", "reason": "wrong_content", "message": "not what was announced"}
            return self.work("write", {**request, "content": base64.b64encode(content).decode()})
        if kind == "send":
            read = self.work("read", {**request, "offset": 0, "limit": request["size"]})
            if read["state"] != "exited":
                return read
            content = base64.b64decode(read["content"])
            self.contents[request["url"]] = content
            return {**read, "sha256": sha256(content).hexdigest(), "content": ""}
        return self.work(kind, request)

    def work(self, kind: str, request: dict[str, Any]) -> dict[str, Any]:
        places = {word: str(self.folder / request[word]) for word in ("path", "to") if word in request}
        header = {"kind": kind, "mode": None, **request, **places}
        header["mode"] = header["mode"] and int(header["mode"], 8)
        fields, data = handle(header, base64.b64decode(request.get("content", "")))
        if "refused" in fields:
            return {"state": "failed", "reason": fields["refused"], "message": fields["message"]}
        return {"state": "exited", **fields["fields"], "content": base64.b64encode(data).decode()}

    @property
    def contents(self) -> dict[str, bytes]:
        return self.rest.world.transfers.contents

    def put(
        self, path: str, content: bytes | str = b"", /, *, match: str = "", key: str = "", **query: str
    ) -> Reply:
        headers = {
            **({"if-match": match} if match else {}),
            **({"idempotency-key": key} if key else {}),
            **({"if-none-match": "*"} if query.pop("new", "") else {}),
        }
        raw = content.encode() if isinstance(content, str) else content
        kind = "application/octet-stream"
        return self.rest.call("PUT", FILES, raw, kind=kind, query={"path": path, **query}, headers=headers)

    def get(self, path: str, headers: dict[str, str] | None = None, /, **query: str) -> Reply:
        return self.rest.get(FILES, query={"path": path, **query}, headers=headers)

    def delete(self, path: str, match: str = "", /, **query: str) -> Reply:
        headers = {"if-match": match} if match else {}
        return self.rest.call("DELETE", FILES, query={"path": path, **query}, headers=headers)


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


@pytest.mark.req("NOD-426", "NOD-428", "NODQ-67")
def test_what_is_saved_is_read_with_its_version(files: Files) -> None:
    saved = files.put("in.csv", "a,b\n1,ü\n")
    assert (saved.code, saved.json["size"], saved.headers["etag"]) == (201, 9, saved.json["etag"])
    read = files.get("in.csv")
    assert (read.code, read.text, read.headers["etag"]) == (200, "a,b\n1,ü\n", saved.json["etag"])
    assert read.headers["content-type"] == "application/octet-stream"
    assert files.get("in.csv", {"if-none-match": saved.json["etag"]}).code == 304
    assert files.put("in.csv", "x").code == 200
    assert files.get("in.csv", {"if-none-match": saved.json["etag"]}).text == "x"
    assert files.get("in.csv", {"if-match": saved.json["etag"]}).code == 412


@pytest.mark.req("NOD-427")
def test_of_two_who_save_the_same_version_the_second_is_refused(files: Files) -> None:
    version = files.put("notes", "one").json["etag"]
    first = files.put("notes", "first", match=version)
    second = files.put("notes", "second", match=version)
    assert (first.code, second.code, second.json["reason"]) == (200, 412, "PreconditionFailed")
    assert files.get("notes").text == "first"
    assert files.put("notes", "third", match=first.json["etag"]).code == 200
    assert files.put("notes", "new", new="yes").code == 412
    assert files.put("fresh", "new", new="yes").code == 201
    assert files.put("gone", "x", match="*").code == 412
    assert not list(files.folder.glob(".nodus-*"))


def test_parts_of_a_file_are_read(files: Files) -> None:
    files.put("f", "0123456789")
    part = files.get("f", {"range": "bytes=2-4"})
    assert (part.code, part.text, part.headers["content-range"]) == (206, "234", "bytes 2-4/10")
    assert files.get("f", {"range": "bytes=8-"}).text == "89"
    assert files.get("f", {"range": "bytes=10-"}).code == 416
    assert files.get("f", {"range": "lines=1"}).text == "0123456789"


@pytest.mark.req("NOD-426", "NOD-428")
def test_a_large_file_is_uploaded_and_downloaded_beside_the_api(files: Files) -> None:
    content = bytes(range(256)) * 4096
    wanted = {"size": len(content), "sha256": sha256(content).hexdigest()}
    upload = files.rest.post(f"{FILES}/uploads", wanted)
    assert (upload.code, upload.json["headers"]) == (201, {"Content-Length": str(len(content))})
    unplaced = files.put("big", upload=upload.json["id"])
    assert (unplaced.code, unplaced.json["reason"]) == (404, "NotFound")
    files.contents[upload.json["url"]] = content
    placed = files.put("deep/big", upload=upload.json["id"], parents="true")
    assert (placed.code, placed.json["size"]) == (201, len(content))
    assert (files.folder / "deep/big").read_bytes() == content
    assert files.contents == {}
    got = files.get("deep/big")
    assert (got.code, got.headers["nodus-content-sha256"]) == (307, wanted["sha256"])
    assert files.contents[got.headers["location"]] == content
    assert files.get("deep/big", {"range": "bytes=0-999"}).code == 206
    assert files.get("deep/big", {"range": "bytes=0-999999"}).code == 307


def test_another_content_than_was_announced_is_not_taken(files: Files) -> None:
    upload = files.rest.post(f"{FILES}/uploads", {"size": 1, "sha256": "0" * 64}).json
    files.contents[upload["url"]] = b"x"
    refused = files.put("f", upload=upload["id"])
    assert (refused.code, list(files.folder.iterdir())) == (400, [])
    for name in ("", "up-1", "../x", upload["id"] + "0"):
        assert files.put("f", upload=name).code == 404
    for body in ({"size": -1, "sha256": "0" * 64}, {"size": 2**31, "sha256": "0" * 64}, {"size": 1}):
        assert files.rest.post(f"{FILES}/uploads", body).code == 422


def test_a_body_of_some_size_goes_by_the_store_by_itself(files: Files) -> None:
    assert files.put("f", b"x" * 1_000_000).json["size"] == 1_000_000
    assert files.put("f", b"x" * (4 * 1024 * 1024 + 1)).code == 413
    assert (files.folder / "f").stat().st_size == 1_000_000


def test_files_are_moved_removed_and_folders_made(files: Files) -> None:
    version = files.put("a", "a").json["etag"]
    move = f"{FILES}/moves"
    moved = files.rest.post(move, {"path": "a", "to": "new/b", "parents": True})
    assert (moved.code, moved.json["etag"]) == (200, version)
    files.put("c", "c")
    taken = files.rest.post(move, {"path": "c", "to": "new/b"})
    assert (taken.code, taken.json["reason"]) == (409, "Conflict")
    assert files.rest.post(move, {"path": "c", "to": "new/b", "overwrite": True}).code == 200
    assert files.get("new/b").text == "c"
    assert files.rest.post(move, {"path": "none", "to": "x"}).code == 404
    assert files.rest.post(move, {"path": "", "to": "x"}).code == 422
    assert files.rest.post(f"{FILES}/folders", {"path": "d/e"}).code == 200
    assert files.rest.post(f"{FILES}/folders", {"path": "d/e"}).code == 200
    assert files.delete("new").json["reason"] == "Conflict"
    assert files.delete("new/b", version).code == 412
    assert files.delete("new", recursive="true").code == 200
    assert files.delete("new").code == 404
    assert sorted(path.name for path in files.folder.iterdir()) == ["d"]


@pytest.mark.req("FLD-15")
def test_a_link_is_removed_and_not_what_it_leads_to(files: Files, tmp_path_factory: Any) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "kept").write_text("x")
    (files.folder / "link").symlink_to(outside)
    assert files.delete("link", recursive="true").code == 200
    assert (outside / "kept").read_text() == "x"


def test_what_is_no_condition_mode_or_part_is_refused(files: Files) -> None:
    assert files.put("f", "x", match="naked").code == 400
    assert files.put("f", "x", mode="rwx").code == 400
    assert files.put("f", "x", mode="0755").code == 201
    assert (files.folder / "f").stat().st_mode & 0o777 == 0o755
    assert files.rest.call("PUT", FILES, b"x", query={"path": "f", "nonsense": "1"}).code == 400
    assert files.get(".").json["reason"] == "Conflict"


def test_a_key_goes_to_the_daemon_so_that_a_change_is_made_once(files: Files) -> None:
    keys: list[str] = []
    link = files.rest.world.sandboxes.link
    assert link is not None
    pull = link.pull

    def pulls(*given: Any) -> Any:
        pulled = pull(*given)
        keys.extend(ask.key for ask in pulled.asks)
        return pulled

    object.__setattr__(link, "pull", pulls)
    files.put("f", "x", key="mine")
    files.put("f", "x", key="mine")
    files.put("f", "x")
    assert keys[0] == keys[1] != ""
    assert keys[2] == ""


def test_a_file_that_is_too_large_to_be_fetched_is_not_sent_at_all(files: Files) -> None:
    with (files.folder / "sparse").open("wb") as made:
        made.truncate(MOST_FILE_BYTES + 1)
    asked = files.get("sparse")
    assert (asked.code, asked.json["reason"]) == (409, "Conflict")
    assert str(MOST_FILE_BYTES + 1) in asked.json["message"]
    assert files.get("sparse", {"range": "bytes=0-999999"}).code == 409
    assert files.get("sparse", {"range": "bytes=0-999"}).code == 206
    assert files.contents == {}
