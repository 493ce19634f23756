"""The command line shows nothing of the machine that is not named, and tells no secret."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from nodus_core.resources.fields import WorkingFolder
from pydantic import TypeAdapter, ValidationError

from localstack.ecs_agent.cgroups import Group
from localstack.ecs_agent.command import Descriptors, joined, users_of
from localstack.ecs_agent.isolation import Isolation, Mode
from localstack.ecs_agent.limits import Limits, enforced
from localstack.ecs_agent.mounts import can_hold_workspace
from localstack.ecs_agent.room import Room
from localstack.ecs_agent.runtime import Runtime
from localstack.ecs_agent.sandbox_folder import SandboxFolder
from localstack.ecs_agent.user_namespaces import IDS_PER_SLOT, host_id

pytestmark = pytest.mark.req("NOD-042")

ISOLATED = (Mode.ROOT, Mode.ROOT_ONE_USER, Mode.USER)


@pytest.fixture
def folder(tmp_path: Path) -> SandboxFolder:
    made = SandboxFolder(tmp_path, "sbx-1")
    made.create(users_of(Mode.USER, 0))
    return made


def room(mode: Mode, folder: SandboxFolder) -> Room:
    bwrap = Path("/usr/bin/bwrap") if mode.isolated else None
    return Room(Isolation(mode, bwrap), users_of(mode, 0), folder, Group(), Limits())


RUNTIME = Runtime(Path("/state/runtime/x"), Path("/opt/py/bin/python3"), Path("/opt/py"), "sandboxd")


def shown(command: list[str]) -> list[str]:
    return [
        command[n + 1] for n, word in enumerate(command) if word in ("--bind", "--ro-bind", "--ro-bind-try")
    ]


@pytest.mark.parametrize("mode", ISOLATED)
def test_no_home_no_root_no_engine_is_shown(mode: Mode, folder: SandboxFolder) -> None:
    sources = shown(room(mode, folder).command(RUNTIME, Descriptors(life=5, dial=6)))
    assert "/" not in sources
    forbidden = ("/home", "/root", "/run", "/var", "/sys", "/proc", "/dev", "/boot", "/etc/ssl/private")
    own = (str(folder.path), "/state/runtime/x")
    assert not [source for source in sources if source.startswith(forbidden) and not source.startswith(own)]
    assert "/etc" not in sources
    assert "/etc/ssl" not in sources


@pytest.mark.parametrize("mode", ISOLATED)
def test_every_namespace_is_its_own(mode: Mode, folder: SandboxFolder) -> None:
    command = room(mode, folder).command(RUNTIME, Descriptors())
    assert {"--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--as-pid-1"} <= set(command)
    assert "--unshare-cgroup" not in command
    assert ("--unshare-user" in command) == (mode is Mode.USER)
    assert ("--disable-userns" in command) == (mode is Mode.USER)


def test_root_keeps_no_capability_for_what_runs_inside(folder: SandboxFolder) -> None:
    for mode, kept in ((Mode.ROOT, []), (Mode.ROOT_ONE_USER, ["CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP"])):
        command = room(mode, folder).command(RUNTIME, Descriptors())
        assert command[command.index("--cap-drop") + 1] == "ALL"
        assert [command[n + 1] for n, word in enumerate(command) if word == "--cap-add"] == kept
        entry = json.loads(command[-1])
        assert bool(entry["capabilities"]) == (mode is Mode.ROOT)
        assert entry["uid"] is not None


def test_no_two_slots_share_a_user() -> None:
    seen: set[int] = set()
    for slot in range(50):
        ids = set(range(host_id(slot, 0), host_id(slot, IDS_PER_SLOT), 1024))
        assert seen.isdisjoint(ids)
        seen |= ids
    assert users_of(Mode.ROOT, 1).host_command != users_of(Mode.ROOT, 0).host_command


@pytest.mark.parametrize("mode", [*ISOLATED, Mode.NONE])
def test_what_the_task_says_cannot_replace_what_the_launcher_says(mode: Mode, folder: SandboxFolder) -> None:
    forged = {"NODUS_ISOLATION": "{}", "NODUS_DIAL_FD": "0", "PATH": "/evil", "NODUS_ENROL_CODE": "secret"}
    made = room(mode, folder)
    environment = made.environment(forged, 6)
    assert json.loads(environment["NODUS_ISOLATION"])["isolated"] is mode.isolated
    assert environment["NODUS_DIAL_FD"] == "6"
    assert environment["PATH"] != "/evil"
    assert environment["NODUS_ENROL_CODE"] == "secret"
    assert ("NODUS_COMMAND_UID" in environment) == (mode is Mode.ROOT)
    assert not any("secret" in word for word in made.command(RUNTIME, Descriptors()))


def test_without_isolation_no_bubblewrap_is_run(folder: SandboxFolder) -> None:
    command = room(Mode.NONE, folder).command(RUNTIME, Descriptors(life=5, dial=6))
    assert command[0] == "/opt/py/bin/python3"
    assert json.loads(command[-1])["isPid1"] is False


@pytest.mark.req("NOD-157")
def test_where_nothing_can_be_shown_elsewhere_the_daemon_is_told_the_working_folders_name(
    folder: SandboxFolder,
) -> None:
    told = replace(room(Mode.NONE, folder), workspace_at="/work/x").environment({}, None)
    assert (told["NODUS_WORKSPACE"], told["NODUS_WORKSPACE_CALLED"]) == (str(folder.workspace), "/work/x")
    for mode in ISOLATED:
        assert "NODUS_WORKSPACE_CALLED" not in room(mode, folder).environment({}, None)


def test_groups_are_joined_before_anything_runs() -> None:
    assert joined([], ["x"]) == ["x"]
    assert joined([Path("/g/cgroup.procs")], ["x", "--", "y"])[-5:] == [
        "/g/cgroup.procs",
        "--",
        "x",
        "--",
        "y",
    ]


def test_limits_follow_the_task() -> None:
    limits = Limits.of_task(256, 512)
    assert (limits.cpus, limits.memory_bytes) == (1.0, 512 * 1024 * 1024)
    assert Limits.of_task(None, None).memory_bytes == Limits().memory_bytes


def test_only_what_holds_is_reported_as_enforced() -> None:
    nothing = enforced(Limits(), frozenset(), isolated=False).to_wire()
    assert nothing["missing"] == ["memoryBytes", "processes", "cpus", "tmpBytes", "diskBytes"]
    all_of_it = enforced(Limits(), frozenset({"memory", "pids", "cpu"}), isolated=True).to_wire()
    assert all_of_it["missing"] == ["diskBytes"]


def test_links_are_not_followed_when_a_folder_is_removed(folder: SandboxFolder, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("x")
    (folder.workspace / "link").symlink_to(outside)
    (folder.workspace / "locked").mkdir()
    (folder.workspace / "locked").chmod(0)
    folder.remove()
    assert not folder.path.exists()
    assert (outside / "kept").exists()


@pytest.mark.req("NOD-017", "NOD-157")
@pytest.mark.parametrize("mode", ISOLATED)
def test_the_working_folder_is_where_the_agent_wants_it(mode: Mode, folder: SandboxFolder) -> None:
    wanted = replace(room(mode, folder), workspace_at="/work/x")
    command = wanted.command(RUNTIME, Descriptors())
    at = command.index(str(folder.workspace))
    assert command[at - 1 : at + 2] == ["--bind", str(folder.workspace), "/work/x"]
    assert command[command.index("--chdir") + 1] == "/work/x"
    assert "/workspace" not in command
    assert command.index("/work") < at  # made with a mode that lets commands through
    assert wanted.environment({}, None)["NODUS_WORKSPACE"] == "/work/x"


@pytest.mark.req("NOD-157")
def test_no_working_folder_hides_the_system_or_the_daemon() -> None:
    good = ("/workspace", "/work/x", "/home/agent", "/home/agent/project", "/srv", "/opt/project", "/tmp/x")
    bad = (
        "/usr",
        "/usr/local/x",
        "/etc/x",
        "/proc/1",
        "/dev/shm",
        "/lib64/x",
        "/run/x",
        "/",
        "relative",
        "/root/x",
    )
    daemons = ("/opt", "/opt/sandboxd", "/opt/sandboxd/x", "/var", "/var/lib/sandboxd", "/home")
    assert [path for path in good if not can_hold_workspace(path)] == []
    assert [path for path in (*bad, *daemons) if can_hold_workspace(path)] == []
    # The API admits the same ones: what an agent may ask for can be made here and on AWS.
    admits = TypeAdapter(WorkingFolder)
    assert [admits.validate_python(path) for path in good] == list(good)
    for path in (*bad, *daemons):
        with pytest.raises(ValidationError):
            admits.validate_python(path)


def test_of_an_installation_only_the_interpreter_and_its_library_are_shown(
    folder: SandboxFolder, tmp_path: Path
) -> None:
    """A base environment of conda holds other environments, packages and programs, often below a home."""
    prefix = tmp_path / "conda"
    for name in ("bin", "lib/python3.11", "envs/secret", "pkgs", "etc"):
        (prefix / name).mkdir(parents=True)
    for name in ("python", "python3", "python3.11", "conda", "token"):
        (prefix / "bin" / name).touch()
    runtime = replace(RUNTIME, interpreter=prefix / "bin/python3.11", prefix=prefix)
    command = room(Mode.USER, folder).command(runtime, Descriptors())
    shown = {command[n + 1] for n, word in enumerate(command) if word == "--ro-bind"}
    below = {path.removeprefix(f"{prefix}/") for path in shown if path.startswith(str(prefix))}
    assert below == {"bin/python", "bin/python3", "bin/python3.11", "lib"}
    assert str(prefix) not in shown
