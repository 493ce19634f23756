"""Sources by git's own protocol, from a host under TLS and from a folder: which commit, which files, what is refused."""

import base64
import gzip
import json
import random
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from git_hosts import HOST, GitHost
from nodus_core.conversations.sources import Allowed, Remote, SourceRefused, SourceUnavailable
from nodus_core.providers import git_client, git_files, git_pack
from nodus_core.providers.git_repositories import GitRepositories
from tls_providers import Provider, Request, Told, tls_provider

from tests.fixtures.repositories import FOLDER, PROGRAM, SUBMODULE, Bare, Content, link

TOKEN = "ghs_plum-9f31-KITE-77aa"
FILES: dict[str, Content] = {
    "README.md": "hello\n",
    "run.sh": (PROGRAM, b"#!/bin/sh\n"),
    "docs": {"deep": {"page.md": "a page\n"}, "up.md": link("../README.md")},
    "vendored": (SUBMODULE, b"1" * 40),
    "grün.txt": "green\n",
}


class Sources:
    """A way to repositories of a folder; each test takes both."""

    def __init__(self, kind: str, folder: Path, provider: Provider | None) -> None:
        self.kind, self.folder, self.provider = kind, folder, provider

    def bare(self, name: str = "acme/site") -> Bare:
        return Bare(self.folder, name)

    def copy(
        self, ref: str | None = None, repo: str = "acme/site", **more: Any
    ) -> tuple[str, dict[str, Any]]:
        """The commit, and the archive's entries by their names: bytes of files, targets of links, None for folders."""
        with (
            self.reader().snapshot(self.remote(repo, **more), ref) as snapshot,
            tarfile.open(fileobj=snapshot.archive, mode="r:gz") as archive,
        ):
            files = {entry.name: self._content(archive, entry) for entry in archive}
        assert snapshot.entries == len(files)
        assert snapshot.size == sum(len(content) for content in files.values() if isinstance(content, bytes))
        return snapshot.commit, files

    def _content(self, archive: tarfile.TarFile, entry: tarfile.TarInfo) -> bytes | str | None:
        if entry.isdir():
            return None
        file = archive.extractfile(entry) if entry.isfile() else None
        return file.read() if file is not None else entry.linkname

    def remote(self, repo: str, **more: Any) -> Remote:
        if self.provider is None:
            return Remote("Local", repo)
        return Remote("Git", repo, f"https://{HOST}:{self.provider.port}", **more)

    def reader(self) -> GitRepositories:
        secret: dict[str, Any] = {}
        if self.provider is not None:
            secret["byok"] = {"privateHosts": {HOST: "127.0.0.1"}, "certificates": self.provider.certificates}
        return GitRepositories(Allowed(folder=str(self.folder)), lambda: json.dumps(secret))


def refuses(reader: GitRepositories, remote: Remote, words: str) -> None:
    with pytest.raises(SourceRefused, match=words), reader.snapshot(remote, None):
        pass


@contextmanager
def over_http(folder: Path, home: Path, host: GitHost) -> Iterator[Sources]:
    with tls_provider(home, host, HOST) as running:
        yield Sources("http", folder, running)


@pytest.fixture(params=["folder", "http", "old-http"])
def sources(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Sources]:
    folder = tmp_path / "repositories"
    folder.mkdir()
    if request.param == "folder":
        yield Sources("folder", folder, None)
        return
    host = GitHost(folder)
    host.oldest = request.param == "old-http"
    with over_http(folder, tmp_path, host) as found:
        yield found


@pytest.mark.req("NOD-152", "NOD-154", "NOD-156", "FLD-15")
def test_a_copy_has_the_files_of_one_commit_and_nothing_of_git(sources: Sources) -> None:
    bare = sources.bare()
    bare.push({"old": "x"})
    commit = bare.push(FILES)
    assert sources.copy() == (
        commit,
        {
            "README.md": b"hello\n",
            "run.sh": b"#!/bin/sh\n",
            "docs": None,
            "docs/deep": None,
            "docs/deep/page.md": b"a page\n",
            "docs/up.md": "../README.md",
            "vendored": None,
            "grün.txt": b"green\n",
        },
    )


@pytest.mark.req("NOD-152")
def test_a_ref_is_a_branch_a_tag_or_a_commit(sources: Sources) -> None:
    bare = sources.bare()
    first, second = bare.push({"a": "1"}), bare.push({"a": "2"})
    other = bare.push({"a": "3"}, "feature/x")
    bare.tag("v1", first)
    bare.tag("v2", second, annotated=True)
    bare.tag("feature/x", first)
    assert sources.copy("main") == (second, {"a": b"2"})
    assert sources.copy("feature/x") == (other, {"a": b"3"})
    assert sources.copy("refs/tags/feature/x")[0] == first
    assert sources.copy("v1") == (first, {"a": b"1"})
    assert sources.copy("v2") == (second, {"a": b"2"})
    assert sources.copy(second.upper())[0] == second
    if sources.kind != "http" or sources.provider is None:
        return
    assert sources.copy(other)[0] == other


@pytest.mark.req("NOD-152")
def test_a_commit_that_no_branch_has_any_more(tmp_path: Path) -> None:
    folder = tmp_path / "repositories"
    folder.mkdir()
    bare = Bare(folder, "acme/site")
    first = bare.push({"a": "1"})
    bare.push({"a": "2"})
    with over_http(folder, tmp_path, GitHost(folder)) as sources:
        assert sources.copy(first) == (first, {"a": b"1"})
    assert Sources("folder", folder, None).copy(first) == (first, {"a": b"1"})


@pytest.mark.req("NOD-151", "NOD-152")
def test_what_is_not_there_is_named(sources: Sources) -> None:
    sources.bare().push({"a": "1"})
    with pytest.raises(SourceRefused, match=r"acme/site has no branch and no tag 'gone'$"):
        sources.copy("gone")
    with pytest.raises(SourceRefused, match="of a commit write all 40 digits"):
        sources.copy("abcdef0")
    with pytest.raises(SourceRefused, match="acme/none"):
        sources.copy(repo="acme/none")
    with pytest.raises((SourceRefused, SourceUnavailable), match="acme/site"):
        sources.copy("0123456789" * 4)
    sources.bare("acme/empty")
    with pytest.raises(SourceRefused, match="acme/empty has no default branch with a commit"):
        sources.copy(repo="acme/empty")


@pytest.mark.req("NOD-153")
def test_the_same_commit_is_the_same_archive(sources: Sources) -> None:
    sources.bare().push(FILES)
    found = set()
    for _ in range(2):
        with sources.reader().snapshot(sources.remote("acme/site"), None) as snapshot:
            found.add(snapshot.archive.read())
    (archive,) = found
    assert b"Alice" not in gzip.decompress(archive)


@pytest.mark.req("FLD-15", "NOD-156")
@pytest.mark.parametrize(
    ("files", "entry"),
    [
        ({"a": {"..": {"out": "x"}}}, "a/.."),
        ({".": "x"}, "."),
        ({"a/b": "x"}, "a/b"),
        ({"": "x"}, "''"),
        ({".git": {"config": "x"}}, ".git"),
        ({"sub": {".GIT": "x"}}, "sub/.GIT"),
        ({"n" * 256: "x"}, "nnn"),
        ({"out": link("/etc/passwd")}, "'out' is a link to '/etc/passwd'"),
        ({"d": {"out": link("../../x")}}, "d/out"),
        ({"a": {}, "out": link("a/../../x")}, "'out' is a link"),
        ({"void": link("")}, "void"),
        ({"pipe": (0o010000, b"")}, "pipe"),
    ],
    ids=[
        "up",
        "dot",
        "slash",
        "empty",
        "git",
        "GIT",
        "long",
        "absolute",
        "climbs",
        "down-up",
        "void",
        "pipe",
    ],
)
def test_hostile_entries_are_refused_by_name(tmp_path: Path, files: dict[str, Content], entry: str) -> None:
    Bare(tmp_path, "acme/evil").push({"fine": "x", **files})
    with pytest.raises(SourceRefused, match="acme/evil is not copied") as refused:
        Sources("folder", tmp_path, None).copy(repo="acme/evil")
    assert entry in str(refused.value)


@pytest.mark.req("FLD-15")
def test_bounds_hold_before_anything_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare, reader = Bare(tmp_path, "acme/big"), Sources("folder", tmp_path, None)
    bare.push(
        {"zeros": b"\0" * 3_000_000, "more": random.Random(1).randbytes(20_000), "d": {"a": "", "b": ""}}
    )

    def refused(module: Any, name: str, value: int, words: str) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(module, name, value)
            with pytest.raises(SourceRefused, match=words):
                reader.copy(repo="acme/big")

    refused(git_pack, "MOST_FILE", 2_999_999, "an object of the commit has 3000000 bytes")
    refused(git_pack, "MOST_BYTES", 1_000_000, "unpack to more than")
    refused(git_pack, "MOST_OBJECTS", 4, "objects, at most 4")
    refused(git_files, "MOST_BYTES", 3_000_000, "the files of acme/big have more than")
    refused(git_files, "MOST_ENTRIES", 4, "more than 4 files, folders and links")
    refused(git_files, "MOST_ARCHIVE", 10_000, "bytes, packed")
    refused(git_files, "MOST_DEPTH", 1, "lies too deep")
    refused(git_client, "MOST_PACKED", 10_000, "packed bytes at one commit")
    reader.copy(repo="acme/big")


@pytest.mark.req("FLD-15")
def test_a_small_commit_of_countless_entries_is_bounded(tmp_path: Path) -> None:
    bare = Bare(tmp_path, "acme/bomb")
    folder = bare.tree({"f": "x"})
    for _ in range(20):
        folder = bare.tree({f"d{number}": (FOLDER, folder) for number in range(10)})
    bare.push({"d": (FOLDER, folder)})
    with pytest.raises(SourceRefused, match="more than 50000 files, folders and links"):
        Sources("folder", tmp_path, None).copy(repo="acme/bomb")


@pytest.mark.req("NOD-151", "NOD-156", "FLD-14")
def test_a_token_goes_to_its_host_and_is_asked_for(tmp_path: Path) -> None:
    folder = tmp_path / "repositories"
    folder.mkdir()
    commit = Bare(folder, "acme/private").push({"a": "1"})
    login = "Basic " + base64.b64encode(f"deploy:{TOKEN}".encode()).decode()
    with over_http(folder, tmp_path, GitHost(folder, login)) as sources:
        assert sources.copy(repo="acme/private", user="deploy", token=TOKEN)[0] == commit
        for wrong in ({}, {"token": "another"}):
            with pytest.raises(SourceRefused, match="401 for acme/private") as refused:
                sources.copy(repo="acme/private", **wrong)
            assert "another" not in str(refused.value)
        with sources.reader().snapshot(
            sources.remote("acme/private", user="deploy", token=TOKEN), None
        ) as copied:
            assert TOKEN.encode() not in gzip.decompress(copied.archive.read())
    assert TOKEN not in repr(sources.remote("acme/private", token=TOKEN))


@pytest.mark.req("NOD-155", "FLD-13")
@pytest.mark.parametrize(
    ("told", "error"),
    [
        (Told(503, headers={"Retry-After": "7"}), SourceUnavailable),
        (Told(429), SourceUnavailable),
        (Told(301, headers={"Location": "https://169.254.169.254/"}), SourceRefused),
        (Told(200, b"<html>", {"Content-Type": "text/html"}), SourceRefused),
        (Told(200, b"zzzz", {"Content-Type": "application/x-git-upload-pack-advertisement"}), None),
        (Told(200, b"", {"Content-Type": "application/x-git-upload-pack-advertisement"}), None),
        (None, SourceUnavailable),
    ],
)
def test_what_a_host_may_answer(tmp_path: Path, told: Told | None, error: type[Exception] | None) -> None:
    folder = tmp_path / "repositories"
    folder.mkdir()
    with (
        tls_provider(tmp_path, lambda _: told, HOST) as provider,
        pytest.raises(error or (SourceRefused, SourceUnavailable)),
    ):
        Sources("http", folder, provider).copy()
    assert all(not request.path.startswith("http") for request in provider.requests)


@pytest.mark.req("FLD-13")
def test_a_name_that_leads_inside_is_not_asked(tmp_path: Path) -> None:
    reader = GitRepositories(Allowed(), lambda: "{}")
    refuses(reader, Remote("Git", "a/b", "https://127.0.0.1"), "not public")


@pytest.mark.req("NOD-151", "NODQ-102", "FLD-14")
def test_an_installation_of_the_app_gives_a_token_for_one_repository(tmp_path: Path) -> None:
    folder = tmp_path / "repositories"
    folder.mkdir()
    commit = Bare(folder, "acme/private").push({"a": "1"})
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    login = "Basic " + base64.b64encode(f"x-access-token:{TOKEN}".encode()).decode()
    host = GitHost(folder, login)

    def tell(request: Request) -> Told | None:
        if not request.path.startswith("/app/"):
            return host(request)
        word = jwt.decode(
            request.headers["authorization"].removeprefix("Bearer "), key.public_key(), algorithms=["RS256"]
        )
        assert word["iss"] == "4711"
        if request.path != "/app/installations/42/access_tokens":
            return Told(404)
        if json.loads(request.body)["repositories"] != ["private"]:
            return Told(422)
        return Told(201, json.dumps({"token": TOKEN}).encode())

    with tls_provider(tmp_path, tell, HOST) as provider:
        base = f"https://{HOST}:{provider.port}"
        pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ).decode()
        secret = {
            "byok": {"privateHosts": {HOST: "127.0.0.1"}, "certificates": provider.certificates},
            "githubApp": {"privateKey": pem},
        }
        reader = GitRepositories(Allowed(app="4711"), lambda: json.dumps(secret), github_api=base)
        with reader.snapshot(Remote("GitHub", "acme/private", base, installation=42), None) as snapshot:
            assert snapshot.commit == commit
        other = Remote("GitHub", "acme/other", base, installation=42)
        refuses(reader, other, "installation 42 of the operator's GitHub App may not read acme/other")
        refuses(reader, Remote("GitHub", "acme/private", base, installation=1), "404")
        bare = GitRepositories(Allowed(), lambda: json.dumps(secret), github_api=base)
        refuses(bare, Remote("GitHub", "acme/private", base, installation=42), "no GitHub App")
    tokens = [json.loads(request.body) for request in provider.requests if request.path.startswith("/app/")]
    assert tokens[0]["permissions"] == {"contents": "read"}
