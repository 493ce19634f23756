"""A full disk, too many open files, a damaged record: the sandbox at hand is refused or left, the agent lives on."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from localstack.ecs_agent import launcher as launchers
from localstack.ecs_agent import orphans, readiness, sandbox_folder
from localstack.ecs_agent.cgroups import ControlGroups
from localstack.ecs_agent.command import users_of
from localstack.ecs_agent.errors import SandboxStartError
from localstack.ecs_agent.isolation import UNMADE, Isolation, Mode
from localstack.ecs_agent.launcher import Launcher, Order
from localstack.ecs_agent.limits import Limits
from localstack.ecs_agent.runtime import Runtime
from localstack.ecs_agent.sandbox_folder import Record, SandboxFolder
from localstack.paths import State

RUNTIME = Runtime(Path("/state/runtime/x"), Path("/bin/false"), Path("/usr"), "sandboxd")


def order(name: str = "sbx-1") -> Order:
    return Order(name, "task/1", {}, frozenset(), Limits())


def starts(folder: Path) -> Launcher:
    folder.mkdir(exist_ok=True)
    return Launcher(RUNTIME, folder, ControlGroups({}, 0))


def failing(number: int) -> Any:
    def fail(*_: Any, **__: Any) -> Any:
        raise OSError(number, os.strerror(number))

    return fail


@pytest.mark.parametrize(
    ("part", "name", "number"),
    [
        (sandbox_folder.mounts, "write_etc", errno.ENOSPC),
        (sandbox_folder, "write_private", errno.ENOSPC),
        (launchers.socket, "socketpair", errno.EMFILE),
        (launchers.subprocess, "Popen", errno.EMFILE),
    ],
    ids=["folder", "record", "sockets", "process"],
)
def test_a_start_without_room_is_a_failed_start_that_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: Any, name: str, number: int
) -> None:
    launcher = starts(tmp_path / "sandboxes")
    descriptors = len(os.listdir("/proc/self/fd"))
    with monkeypatch.context() as patch:
        patch.setattr(part, name, failing(number))
        with pytest.raises(SandboxStartError, match=os.strerror(number)):
            launcher.start(order(), Isolation(Mode.NONE), 0)
    assert list(launcher.folder.iterdir()) == []
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_a_start_that_cannot_be_recorded_is_ended_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launcher = starts(tmp_path / "sandboxes")
    write, written = sandbox_folder.write_private, list[str]()

    def full_at_the_second(path: Path, text: str) -> None:
        written.append(text)
        if len(written) == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(path, text)

    monkeypatch.setattr(sandbox_folder, "write_private", full_at_the_second)
    with pytest.raises(SandboxStartError, match="No space"):
        launcher.start(order(), Isolation(Mode.NONE), 0)
    assert len(written) == 2
    assert list(launcher.folder.iterdir()) == []


def test_a_sandbox_that_is_there_already_is_kept(tmp_path: Path) -> None:
    launcher = starts(tmp_path / "sandboxes")
    there = SandboxFolder(launcher.folder, "sbx-1")
    there.create(users_of(Mode.NONE, 0))
    with pytest.raises(SandboxStartError):
        launcher.start(order(), Isolation(Mode.NONE), 0)
    assert there.workspace.is_dir()


def test_a_probe_that_cannot_be_made_is_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The root of a rootless container may give files to nobody."""
    launcher = starts(tmp_path / "sandboxes")
    monkeypatch.setattr(SandboxFolder, "_fill", failing(errno.EINVAL))
    said = launcher.attempt(Mode.ROOT_ONE_USER, Path("/usr/bin/bwrap"))
    assert said == f"{UNMADE}: [Errno 22] Invalid argument"


class Stopped:
    def __init__(self) -> None:
        self.tasks: list[str] = []

    def stop(self, arn: str, reason: str) -> None:
        self.tasks.append(arn)


def test_what_cannot_be_read_or_removed_does_not_keep_the_agent_from_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "sandboxes"
    damaged, stuck, good = (SandboxFolder(folder, name) for name in ("a", "b", "c"))
    for sandbox in (damaged, stuck, good):
        sandbox.create(users_of(Mode.NONE, 0))
        sandbox.write_record(Record(f"task/{sandbox.path.name}", {}))
    (damaged.path / "sandbox.json").write_text('{"task": ')
    remove = SandboxFolder.remove

    def stuck_one(sandbox: SandboxFolder) -> None:
        if sandbox.path == stuck.path:
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
        remove(sandbox)

    monkeypatch.setattr(SandboxFolder, "remove", stuck_one)
    cluster: Any = Stopped()
    orphans.end_orphans(folder, ControlGroups({}, 0), cluster, threading.Event())
    assert cluster.tasks == ["task/b", "task/c"]
    assert sorted(path.name for path in folder.iterdir()) == ["a", "b"]


def test_the_agent_says_what_it_decided_and_a_full_disk_does_not_end_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = State(tmp_path)
    assert readiness.told(state, os.getpid()) is None
    readiness.tell(state, "no isolation")
    assert readiness.told(state, os.getpid()) == readiness.Readiness(os.getpid(), "no isolation")
    assert readiness.told(state, os.getpid() + 1) is None  # another agent's word
    monkeypatch.setattr(readiness, "write_private", failing(errno.ENOSPC))
    readiness.tell(state, None)
