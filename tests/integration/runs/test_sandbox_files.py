"""Files and live output of a Sandbox in the deployed cloud, from the SDK and the command line."""

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import nodus
import pytest
from nodus import errors

from localstack.testing import TestCloud

pytestmark = pytest.mark.timeout(400)

MIB = 1024 * 1024


@pytest.fixture(scope="module")
def box(local_cloud: TestCloud) -> Iterator[nodus.Sandbox]:
    """A running Sandbox."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("NODUS_CONFIG", str(local_cloud.configuration))
        settled = nodus.Client().settings
    with nodus.Client(server=settled.server, token=settled.token, project=settled.project) as client:
        made = nodus.Sandbox.create(f"files-{uuid.uuid4().hex[:8]}", client=client)
        made.start()
        yield made
        made.delete()


def cli(cloud: TestCloud, *words: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "nodus.cli", *words]
    return subprocess.run(command, env=cloud.environment(), capture_output=True, timeout=300, check=False)


@pytest.mark.req("NOD-426", "NOD-428", "NODQ-67")
def test_100_mb_go_up_and_down_by_hash(box: nodus.Sandbox, local_cloud: TestCloud, tmp_path: Path) -> None:
    content = os.urandom(100 * MIB)
    local, got = tmp_path / "big.bin", tmp_path / "got.bin"
    local.write_bytes(content)
    put = cli(local_cloud, "sandbox", "files", "put", box.name, str(local))
    assert put.returncode == 0, put.stderr
    assert b"100 of 100 MiB" in put.stderr
    inside = box.run("sha256sum big.bin; whoami; stat -c %U big.bin")
    assert inside.output.split()[0] == sha256(content).hexdigest()
    fetched = cli(local_cloud, "sandbox", "files", "get", box.name, "big.bin", str(got))
    assert fetched.returncode == 0, fetched.stderr
    assert sha256(got.read_bytes()).hexdigest() == sha256(content).hexdigest()
    assert [entry.name for entry in box.files() if entry.name.startswith(".nodus")] == []


@pytest.mark.req("NOD-425", "NOD-427")
def test_a_save_that_is_based_on_an_older_version_is_refused(box: nodus.Sandbox) -> None:
    version = box.write_file("notes.txt", "one\n").etag
    box.run("echo two >> notes.txt")
    with pytest.raises(errors.PreconditionFailedError):
        box.write_file("notes.txt", "lost\n", if_match=version)
    content, now = box.read_file("notes.txt")
    assert content == b"one\ntwo\n"
    box.write_file("notes.txt", content + b"three\n", if_match=now)
    assert box.run("cat notes.txt").output == "one\ntwo\nthree\n"
    assert "notes.txt" in [entry.name for entry in box.files()]


@pytest.mark.req("NOD-433", "NOD-434", "NOD-441")
def test_output_comes_while_the_command_runs(box: nodus.Sandbox) -> None:
    sandboxes = box._client.sandboxes
    waits = "echo first; echo problem >&2; until [ -e go ]; do sleep 0.1; done; rm go; echo last"
    command = sandboxes.run(box.name, waits).metadata.name
    told: dict[str, str] = {"stdout": "", "stderr": ""}
    for piece in sandboxes.follow_output(box.name, command):
        told[piece.stream] += piece.text
        if told == {"stdout": "first\n", "stderr": "problem\n"}:
            assert sandboxes.command(box.name, command).status.state == "Running"
            box.write_file("go", b"")
    assert told == {"stdout": "first\nlast\n", "stderr": "problem\n"}
    long = box.run("seq 20000; head -c 70000 /dev/zero | tr '\\0' x")
    lines = long.output.splitlines()
    assert (len(lines), lines[-2]) == (10_001, "20000")
    assert lines[-1].startswith("x" * 65_536 + " … 4464")


@pytest.mark.req("FLD-15", "FLD-08")
def test_hostile_names_and_links_reach_nothing_that_a_command_would_not(
    box: nodus.Sandbox, local_cloud: TestCloud
) -> None:
    box.run(
        "mkdir h; cd h; ln -s /var/lib/sandboxd state; ln -s /proc/1/environ env; ln -s loop loop; mkfifo pipe;"
        r" touch -- '-rf' $'a\nb\e[31m' $'bad\xff'; ln -s / root"
    )
    listed = cli(local_cloud, "sandbox", "files", "ls", box.name, "h")
    assert listed.returncode == 0, listed.stderr
    assert b"\x1b" not in listed.stdout
    for path in ("h/state/lock", "h/env", "/proc/1/environ", "h/loop", "h/pipe", "h/root/etc/shadow"):
        with pytest.raises((errors.ForbiddenError, errors.NotFoundError, errors.ConflictError)):
            box.read_file(path)
    with pytest.raises((errors.ForbiddenError, errors.ConflictError)):
        box.write_file("h/root/usr/evil", b"x")
    assert box.read_file("h/root/workspace/h/-rf").content == b""
    box.write_file("h/a\nb\x1b[31m", b"new")
    box.remove_file("h", recursive=True)
    assert box.run("ls / | grep -c usr; ls h").output.splitlines()[0] == "1"


@pytest.mark.req("NOD-429", "NOD-440")
def test_without_a_machine_nothing_is_shown_and_nothing_starts(box: nodus.Sandbox) -> None:
    command = box._client.sandboxes.run(box.name, "echo gone").metadata.name
    list(box._client.sandboxes.follow_output(box.name, command))
    box.stop()
    with pytest.raises(errors.SandboxNotRunningError, match="nodus start"):
        list(box.files())
    with pytest.raises(errors.OutputGoneError):
        box._client.sandboxes.output(box.name, command)
    assert box.status.phase == "Paused"
    box.start()
    with pytest.raises(errors.OutputGoneError):
        box._client.sandboxes.output(box.name, command)
