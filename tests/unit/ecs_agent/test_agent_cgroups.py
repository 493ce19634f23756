"""Control groups of version 2, shown on a tree of ordinary files (the escape tests use the machine's own)."""

from __future__ import annotations

from pathlib import Path

import pytest

from localstack.ecs_agent import cgroups
from localstack.ecs_agent.cgroups import DAEMONS_PROCESSES, ControlGroups
from localstack.ecs_agent.limits import Limits

LIMITS = Limits(memory_bytes=1000, processes=50, cpus=0.5)


@pytest.fixture
def delegated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A mount of version 2, and a file that says which group this process is in."""
    monkeypatch.setattr(cgroups.os, "geteuid", lambda: 1000)
    mount = tmp_path / "cgroup"
    scope = mount / "user.slice" / "run.scope"
    scope.mkdir(parents=True)
    (mount / "cgroup.controllers").write_text("cpu memory pids")
    own = tmp_path / "own"
    own.write_text("1:name=systemd:/x\n0::/user.slice/run.scope\n")
    return mount, own


def test_an_ordinary_users_delegated_group_is_used(delegated: tuple[Path, Path]) -> None:
    mount, own = delegated
    groups = ControlGroups.find("nodus", mount, own)
    scope = mount / "user.slice" / "run.scope"
    assert groups.version == 2
    assert set(groups.parents.values()) == {scope / "nodus"}
    assert (scope / "agent" / "cgroup.procs").read_text().isdigit()
    group = groups.create("sbx-1", LIMITS)
    assert group.folders == (scope / "nodus" / "sbx-1",)
    assert group.enforced == {"memory", "pids", "cpu"}
    assert (group.folders[0] / "memory.max").read_text() == "1000"
    assert (group.folders[0] / "pids.max").read_text() == str(50 + DAEMONS_PROCESSES)
    assert (group.folders[0] / "cpu.max").read_text() == "50000 100000"


def test_a_group_that_is_not_delegated_gives_nothing(delegated: tuple[Path, Path]) -> None:
    mount, own = delegated
    own.write_text("0::/elsewhere\n")
    groups = ControlGroups.find("nodus", mount, own)
    assert groups.parents == {}
    assert groups.create("sbx-1", LIMITS).enforced == frozenset()


def test_a_machine_without_control_groups_gives_nothing(tmp_path: Path) -> None:
    assert ControlGroups.find("nodus", tmp_path).parents == {}


def test_a_controller_that_refuses_is_not_reported(tmp_path: Path) -> None:
    (tmp_path / "nodus" / "sbx-1" / "pids.max").mkdir(parents=True)
    groups = ControlGroups({"memory": tmp_path / "nodus", "pids": tmp_path / "nodus"}, 2)
    assert groups.create("sbx-1", LIMITS).enforced == {"memory"}
