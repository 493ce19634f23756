"""Archives as sources in the deployed cloud: fetched outside of the sandbox, unpacked in it, the same in the next one."""

import hashlib
import io
import os
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from localstack.testing import TestCloud
from tests.contract.tls_providers import Provider, Request, Told, tls_provider
from tests.integration.runs.asked import requests
from tests.integration.runs.machine import room
from tests.integration.runs.person import Person, in_turn, manifest, names
from tests.integration.runs.placed import placed
from tests.integration.waiting import until

pytestmark = pytest.mark.timeout(240, func_only=True)

HOST = "downloads.example.com"
LOOK = "pwd; ls -A; cat readme.txt docs/up.txt; ./tool.sh"
SEEN = ["docs", "readme.txt", "tool.sh", "from the archive", "from the archive", "it runs"]


def tar(*entries: tuple[str, bytes, str]) -> bytes:
    """A tar packed by xz: names, contents, and where links lead."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:xz") as archive:
        for name, content, target in entries:
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(content), 0o755 if name.endswith(".sh") else 0o644
            if target:
                info.type, info.linkname = tarfile.SYMTYPE, target
            archive.addfile(info, io.BytesIO(content))
    return raw.getvalue()


def zipped(*entries: tuple[str, bytes, str]) -> bytes:
    """The same as a zip file."""
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content, target in entries:
            info = zipfile.ZipInfo(name)
            mode = (
                stat.S_IFLNK | 0o777 if target else stat.S_IFREG | (0o755 if name.endswith(".sh") else 0o644)
            )
            info.external_attr = mode << 16
            archive.writestr(info, target or content)
    return raw.getvalue()


FILES = (
    ("site-1.0/readme.txt", b"from the archive\n", ""),
    ("site-1.0/tool.sh", b"#!/bin/sh\necho it runs\n", ""),
    ("site-1.0/docs/up.txt", b"", "../readme.txt"),
)


@dataclass
class Shop:
    """A host of archives: what stands at each path."""

    running: Provider
    found: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def __call__(self, request: Request) -> Told:
        if request.path == "/latest":
            return Told(302, headers={"Location": "/site.tar.xz"})
        content = self.found.get(request.path)
        return Told(404) if content is None else Told(body=content)

    def url(self, path: str) -> str:
        return f"https://{HOST}:{self.running.port}{path}"


@pytest.fixture(scope="module")
def shop(local_cloud: TestCloud, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with tls_provider(tmp_path_factory.mktemp("shop"), lambda _: None, HOST) as running:
        made = Shop(running)
        running.tell = made
        with placed(local_cloud, HOST, running):
            yield made


def agent(person: Person, shop: Shop, path: str, spec: dict[str, Any] | None = None, **archive: Any) -> str:
    """An agent whose source is the archive at a path; its name."""
    name = f"unpacker-{os.urandom(4).hex()}"
    source = {"archive": {"url": shop.url(path), **archive}}
    person.agent(name, source=source, workingDir="/work/x", **(spec or {}))
    return name


@pytest.mark.req("NOD-154", "NOD-155", "NOD-157", "NOD-158", "NOD-017")
def test_the_files_of_an_archive_are_there_before_the_setup(person: Person, shop: Shop) -> None:
    shop.found["/site.tar.xz"] = content = tar(*FILES)
    digest = hashlib.sha256(content).hexdigest()
    name = agent(person, shop, "/latest", {"setup": "test -x tool.sh"}, stripComponents=1, sha256=digest)
    run = person.start(name, in_turn(LOOK))
    status = run.succeeded()
    assert names(run.steps())[:4] == ["sandbox", "source", "setup", "model.1"]
    assert status["source"] == {"url": shop.url("/latest"), "sha256": digest}
    assert run.step("source")["preview"] == f"{digest}: {len(content)} bytes, unpacked."
    assert run.step("tool.run_command.1")["preview"].splitlines()[:7] == ["/work/x", *SEEN]


@pytest.mark.req("NOD-153", "NOD-165")
def test_a_zip_file_is_the_same_in_the_next_sandbox_whatever_its_host_has_by_then(
    person: Person, shop: Shop
) -> None:
    shop.found["/site.zip"] = content = zipped(*FILES)
    run = person.start(agent(person, shop, "/site.zip", stripComponents=1), in_turn(LOOK), keepAlive=True)
    run.waits("MessageWait")
    first = run.status()["sandbox"]["name"]
    assert run.step("tool.run_command.1")["preview"].splitlines()[1:7] == SEEN
    shop.found["/site.zip"] = zipped(("site-2.0/readme.txt", b"from a later archive\n", ""))
    asked = len(shop.running.requests)
    room(person.cloud, first).kill()
    assert run.say(in_turn(LOOK), "two").status_code == 202
    until(run.status, lambda status: len(status["turns"]) == 2 and status.get("reason") == "MessageWait")
    own = room(person.cloud, run.status()["sandbox"]["name"])
    assert own.read("readme.txt") == "from the archive\n"
    assert run.status()["sandbox"]["name"] != first
    assert run.status()["source"]["sha256"] == hashlib.sha256(content).hexdigest()
    assert len(shop.running.requests) == asked


@pytest.mark.req("FLD-15")
@pytest.mark.parametrize(
    ("content", "archive", "words"),
    [
        (tar(("fine", b"x", ""), ("d", b"", "/tmp")), {}, "'d' is a link to '/tmp', which leads out"),
        (zipped(("/tmp/out.txt", b"x", "")), {}, "'/tmp/out.txt' has an absolute name"),
        (b"no archive at all" * 100, {}, "It is neither a tar"),
        (tar(*FILES), {"sha256": "0" * 64}, "not " + "0" * 64),
    ],
    ids=["link", "absolute", "none", "digest"],
)
def test_what_is_no_sound_archive_ends_the_run_before_any_model(
    person: Person, shop: Shop, content: bytes, archive: dict[str, Any], words: str
) -> None:
    path = f"/{os.urandom(4).hex()}"
    shop.found[path] = content
    fails(person, agent(person, shop, path, **archive), words)


@pytest.mark.req("NOD-151")
def test_an_archive_that_is_not_there_ends_the_run(person: Person, shop: Shop) -> None:
    fails(person, agent(person, shop, "/nothing"), "answers 404")


@pytest.mark.req("NOD-151")
def test_a_host_that_the_operator_has_not_allowed(person: Person) -> None:
    name = f"unpacker-{os.urandom(4).hex()}"
    made = person.agent(name, source={"archive": {"url": "https://files.example.org/a.zip"}})
    assert made["status"]["conditions"][0]["reason"] == "HostNotAllowed"
    refused = person.call("POST", "agentruns", manifest("AgentRun", name, {"agent": name, "input": "Hello."}))
    assert (refused.status_code, refused.json()["reason"]) == (422, "Invalid")
    assert "an archive at files.example.org" in refused.json()["message"]


def fails(person: Person, agent: str, words: str) -> None:
    run = person.start(agent, "Say hello.")
    status = run.ended()
    assert (status["phase"], status["reason"]) == ("Failed", "SourceFailed")
    assert words in status["message"]
    assert requests(person.cloud, run.mark) == []
