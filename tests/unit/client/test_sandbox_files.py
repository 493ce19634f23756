"""Files of sandboxes from the SDK and the command line, against the API's own routes and the daemon's own worker."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import nodus
import pytest
from nodus import _wire, errors
from nodus._kinds import SANDBOX
from nodus._wire import Answer, Request
from nodus.cli.describe import head

from tests.unit.api.test_api_sandbox_files import Files
from tests.unit.client.conftest import Cli

LARGE = bytes(range(256)) * 12 * 4096


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config_file: Path) -> Files:
    """A sandbox, and a client whose exchanges are calls of the API in memory."""
    folder = tmp_path / "sandbox"
    folder.mkdir()
    made = Files(folder)
    monkeypatch.setenv("NODUS_SERVER", "http://api.test")
    monkeypatch.setenv("NODUS_TOKEN", made.rest.key)
    monkeypatch.setenv("NODUS_PROJECT", "web")

    def exchange(request: Request) -> Answer:
        if request.url.startswith("https://store.test/"):
            return stored(made, request)
        url = urlsplit(request.url)
        headers = {name.lower(): value for name, value in request.headers.items()}
        query = dict(parse_qsl(url.query, keep_blank_values=True))
        kind = headers.pop("content-type", None)
        reply = made.rest.call(
            request.method, url.path, request.content, kind=kind, query=query, headers=headers
        )
        return Answer(reply.code, reply.headers, reply.raw)

    async def awaited(_: Any, request: Request) -> Answer:
        return exchange(request)

    monkeypatch.setattr(_wire.BlockingWire, "exchange", lambda _, request: exchange(request))
    monkeypatch.setattr(_wire.ConcurrentWire, "exchange", awaited)
    return made


def stored(made: Files, request: Request) -> Answer:
    """The object store."""
    assert "Authorization" not in request.headers
    if request.method == "PUT":
        assert request.content is not None
        assert request.headers["Content-Length"] == str(len(request.content))
        made.contents[request.url] = request.content
        if request.progress:
            request.progress(len(request.content))
        return Answer(200, {}, b"")
    return Answer(200, {}, made.contents[request.url])


@pytest.mark.req("NOD-425", "NOD-426", "NOD-427", "NOD-428")
def test_the_sdk_reads_saves_moves_and_removes(files: Files) -> None:
    box = nodus.Sandbox.from_name("mine")
    saved = box.write_file("in.csv", "a,ü\n", mode="0600")
    content, etag = box.read_file("in.csv")
    assert (content.decode(), etag, saved.size) == ("a,ü\n", saved.etag, 5)
    box.write_file("in.csv", b"new", if_match=etag)
    with pytest.raises(errors.PreconditionFailedError, match="changed"):
        box.write_file("in.csv", b"lost", if_match=etag)
    with pytest.raises(errors.PreconditionFailedError):
        box.write_file("in.csv", b"lost", new=True)
    assert box.read_file("in.csv").content == b"new"
    box.make_folder("out")
    box.move_file("in.csv", "out/moved.csv")
    assert [(entry.name, entry.type) for entry in box.files()] == [("out", "Folder")]
    assert [entry.name for entry in box.files("out")] == ["moved.csv"]
    box.remove_file("out", recursive=True)
    assert list(box.files()) == []
    with pytest.raises(errors.NotFoundError):
        box.read_file("none")


@pytest.mark.req("NOD-426", "NOD-428")
def test_a_large_content_goes_beside_the_api_and_is_checked(files: Files) -> None:
    sandboxes = nodus.Client().sandboxes
    gone: list[int] = []
    saved = sandboxes.write_file("mine", "big", LARGE, progress=gone.append)
    assert (saved.size, sum(gone)) == (len(LARGE), len(LARGE))
    assert (files.folder / "big").read_bytes() == LARGE
    assert sandboxes.read_file("mine", "big").content == LARGE
    for address in files.contents:
        files.contents[address] = LARGE[:-1] + b"x"
    files.answer = lambda kind, request: {
        **Files.answer(files, kind, request),
        **({"sha256": "0" * 64} if kind == "send" else {}),
    }  # type: ignore[method-assign]
    files.rest.world.sandboxes.answers = files.answer
    with pytest.raises(errors.UnexpectedAnswerError, match="not what the sandbox has sent"):
        sandboxes.read_file("mine", "big")


def test_those_who_await_do_the_same(files: Files) -> None:
    async def story() -> tuple[bytes, list[str]]:
        async with nodus.AsyncClient() as client:
            box = nodus.AsyncSandbox.from_name("mine", client=client)
            await box.write_file("f", LARGE)
            return (await box.read_file("f")).content, [entry.name async for entry in box.files()]

    assert asyncio.run(story()) == (LARGE, ["f"])


@pytest.mark.req("NOD-425", "NOD-426", "NOD-427", "NOD-428", "NOD-429")
def test_the_command_line_does(files: Files, cli: Cli, tmp_path: Path) -> None:
    local = tmp_path / "data.bin"
    local.write_bytes(LARGE)
    put = cli("sandbox", "files", "put", "mine", str(local))
    assert put.code == 0, put.err
    assert "12 of 12 MiB" in put.err
    assert put.out.startswith(f"data.bin: {len(LARGE)} bytes, version ")
    (files.folder / "bad\n\x1b[31m").write_bytes(b"")
    listed = cli("sandbox", "files", "ls", "mine").out
    assert "data.bin" in listed
    assert "\x1b" not in listed
    target = tmp_path / "got"
    assert cli("sandbox", "files", "get", "mine", "data.bin", str(target)).code == 0
    assert target.read_bytes() == LARGE
    (files.folder / "text").write_text("hello\n")
    assert cli("sandbox", "files", "cat", "mine", "text").out == "hello\n"
    stale = cli("sandbox", "files", "put", "mine", str(local), "text", "--if-match", '"0-0"')
    assert (stale.code, "PreconditionFailed" in stale.err) == (1, True)
    bare = cli("sandbox", "files", "put", "mine", str(local), "text", "--if-match", "0-0")
    assert (bare.code, "PreconditionFailed" in bare.err) == (1, True)  # a shell takes the quotes off
    again = nodus.Sandbox.from_name("mine").write_file("text", "hello\n").etag.strip('"')
    local.write_text("hello\n")
    assert cli("sandbox", "files", "put", "mine", str(local), "text", "--if-match", again).code == 0
    assert cli("sandbox", "files", "mkdir", "mine", "a/b").code == 0
    assert cli("sandbox", "files", "mv", "mine", "text", "a/b/t").code == 0
    assert cli("sandbox", "files", "rm", "mine", "a").code == 1
    assert cli("sandbox", "files", "rm", "mine", "a", "-r").code == 0
    assert not (files.folder / "a").exists()
    files.rest.post("sandboxes/mine/stop")
    files.rest.world.settle()
    stopped = cli("sandbox", "files", "ls", "mine")
    assert (stopped.code, "nodus start sandbox/mine" in stopped.err) == (1, True)


def test_no_name_of_the_sandbox_leads_out_of_the_folder_here(
    files: Files, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    assert cli("sandbox", "files", "get", "mine", "..").code == 1
    (files.folder / "f").write_text("x")
    assert cli("sandbox", "files", "get", "mine", "../sandbox/f").code == 0
    assert (here / "f").read_text() == "x"
    assert cli("sandbox", "files", "put", "mine", "-").code == 1
    assert cli("sandbox", "files", "put", "mine", "-", "typed", stdin="typed").code == 0
    assert (files.folder / "typed").read_text() == "typed"


@pytest.mark.req("NOD-433", "NOD-434")
def test_output_is_shown_as_it_comes_with_its_streams_apart(files: Files, cli: Cli) -> None:
    parts = [
        {"pieces": [{"stream": "stdout", "text": "one\n"}], "first": 0, "next": 4, "ended": False},
        {"pieces": [{"stream": "stderr", "text": "bad\n"}], "first": 0, "next": 8, "ended": False},
        {"pieces": [], "first": 0, "next": 8, "ended": True},
    ]
    asked: list[int] = []
    world = files.rest.world

    def output(daemon: Any, question: dict[str, Any]) -> dict[str, Any]:
        asked.append(question["after"])
        return {"state": "exited", **parts[len(asked) - 1]}

    world.sandboxes.output = output
    shown = cli("sandbox", "run", "mine", "--", "x")
    assert (shown.out, shown.err, shown.code) == ("one\n", "bad\n", 0)
    assert asked == [0, 4, 8]
    asked.clear()
    command = nodus.Client().sandboxes.run("mine", "y").metadata.name
    followed = cli("sandbox", "output", "mine", command, "-f")
    assert (followed.out, followed.err) == ("one\n", "bad\n")


@pytest.mark.req("NOD-431")
def test_several_words_are_a_program_and_its_arguments(files: Files, cli: Cli) -> None:
    assert cli("sandbox", "run", "mine", "--detach", "--", "rm", "a b", "$HOME").code == 0
    assert cli("sandbox", "run", "mine", "--detach", "--", "rm a b | cat").code == 0
    placed = [command.spec.command for command in nodus.Client().sandboxes.commands("mine")]
    assert placed == ["rm a b | cat", "rm 'a b' '$HOME'"]


@pytest.mark.req("NOD-431")
def test_a_command_that_did_not_run_is_said_to_with_the_reason(
    files: Files, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = {"state": "failed", "reason": "not_found", "message": "'/none': No such file or directory."}
    monkeypatch.setattr(files.rest.world.sandboxes, "_behaviour", lambda kind, request: failed)
    shown = cli("sandbox", "run", "mine", "--cwd", "/none", "--", "ls")
    assert shown.code == 1
    assert "Failed: '/none': No such file or directory." in shown.err


@pytest.mark.req("NODQ-73")
def test_who_waits_for_a_sandbox_that_stands_still_is_told_why(files: Files, cli: Cli) -> None:
    files.rest.post("sandboxes/mine/stop")
    files.rest.world.settle()
    waited = cli("wait", "sandbox/mine", "--for=phase=Running", "--timeout=1s")
    assert waited.code == 1
    assert waited.err.count("sandbox/mine stands still (Stopped): It was asked to stop.") == 1
    assert "nodus start sandbox/mine" in waited.err
    assert cli("wait", "sandbox/mine", "--for=phase=Paused").err == ""


def test_the_owner_of_a_runs_sandbox_is_named_as_an_object() -> None:
    owners = [{"apiVersion": "nodus.dev/v1", "kind": "AgentRun", "name": "triage", "uid": "u"}]
    lines = list(head(SANDBOX, {"metadata": {"name": "s", "ownerReferences": owners}}))
    assert [line.split() for line in lines if line.startswith("Owner")] == [["Owner:", "AgentRun/triage"]]
