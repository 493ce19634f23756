"""Which mode is chosen, and what is said when none works."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from localstack.ecs_agent import bubblewrap
from localstack.ecs_agent.isolation import UNMADE, Isolation, Mode, Refusal, decide

pytestmark = pytest.mark.req("NOD-042")

BWRAP = Path("/usr/bin/bwrap")


def choose(
    failures: dict[Mode, str],
    *,
    root: bool = False,
    linux: bool = True,
    bwrap: tuple[Path | None, str] = (BWRAP, ""),
    environment: dict[str, str] | None = None,
) -> Isolation | Refusal:
    return decide(
        environment=environment or {},
        is_root=root,
        is_linux=linux,
        bwrap=bwrap,
        attempt=lambda mode, _: failures.get(mode),
    )


def test_root_gets_two_users() -> None:
    assert choose({}, root=True) == Isolation(Mode.ROOT, BWRAP)


def test_root_without_user_namespaces_gets_one() -> None:
    chosen = choose({Mode.ROOT: "no user namespaces"}, root=True)
    assert chosen == Isolation(Mode.ROOT_ONE_USER, BWRAP, missing=("twoUsers",))


def test_an_ordinary_user_gets_a_user_namespace() -> None:
    assert choose({}) == Isolation(Mode.USER, BWRAP, missing=("twoUsers",))


def test_root_never_falls_back_to_the_mode_in_which_1000_is_root_outside() -> None:
    failures = {
        Mode.ROOT: "x",
        Mode.ROOT_ONE_USER: "bwrap: Creating new namespace failed: Operation not permitted",
    }
    assert isinstance(choose(failures, root=True), Refusal)


@pytest.mark.parametrize(
    ("message", "remedy"),
    [
        ("bwrap: Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)",
         "sysctl user.max_user_namespaces=15000"),
        ("bwrap: No permissions to create new namespace, likely because the kernel does not allow it",
         "sysctl kernel.unprivileged_userns_clone=1"),
        ("bwrap: No permissions to creating new namespace", "sysctl kernel.unprivileged_userns_clone=1"),
        ("bwrap: setting up uid map: Permission denied", "apparmor_restrict_unprivileged_userns=0"),
        ("bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted", "AppArmor"),
        ("bwrap: Can't mount proc on /newroot/proc: Operation not permitted", "outside of the container"),
        ("something never seen", "is named above"),
    ],
)  # fmt: skip
def test_a_refusal_says_what_happened_and_what_to_do(message: str, remedy: str) -> None:
    refusal = choose({Mode.USER: message})
    assert isinstance(refusal, Refusal)
    assert remedy in refusal.remedy
    assert str(refusal) == (
        f"No isolation on this machine (bwrap: {message.removeprefix('bwrap: ')}). Commands are not run. Remedy: {refusal.remedy}. "
        "To run them as your own user without isolation: NODUS_SANDBOX_UNISOLATED=i-understand"
    )


@pytest.mark.parametrize(
    ("number", "remedy"), [(22, "rootless"), (1, "rootless"), (28, "make room"), (30, "NODUS_STATE")]
)
def test_a_folder_that_cannot_be_made_is_a_refusal_with_its_own_remedy(number: int, remedy: str) -> None:
    message = f"{UNMADE}: {OSError(number, os.strerror(number), '/x')}"
    refusal = choose({Mode.ROOT: message, Mode.ROOT_ONE_USER: message}, root=True)
    assert isinstance(refusal, Refusal)
    assert refusal.reason == message
    assert remedy in refusal.remedy


def test_without_bubblewrap_it_says_how_to_get_it() -> None:
    refusal = choose({}, bwrap=(None, "not found"))
    assert isinstance(refusal, Refusal)
    assert "bubblewrap" in refusal.remedy


def test_other_systems_are_refused() -> None:
    refusal = choose({}, linux=False, bwrap=(None, "not found"))
    assert isinstance(refusal, Refusal)
    assert "Linux" in refusal.reason


@pytest.mark.parametrize("value", ["", "1", "true", "I-UNDERSTAND"])
def test_only_the_exact_words_give_up_isolation(value: str) -> None:
    assert isinstance(choose({Mode.USER: "x"}, environment={"NODUS_SANDBOX_UNISOLATED": value}), Refusal)


def test_giving_up_isolation_is_reported() -> None:
    chosen = choose({}, environment={"NODUS_SANDBOX_UNISOLATED": "i-understand"})
    assert isinstance(chosen, Isolation)
    assert chosen.to_wire() == {
        "isolated": False,
        "guard": None,
        "missing": ["filesystem", "processes", "network", "users", "seccomp"],
        "optIn": True,
    }


@pytest.mark.parametrize(
    ("environment", "guard"),
    [
        ({}, "network"),
        ({"NODUS_SANDBOX_GUARD": "network"}, "network"),
        ({"NODUS_SANDBOX_GUARD": "seccomp"}, None),
    ],
)
def test_the_daemon_can_be_left_to_guard_commands_itself(
    environment: dict[str, str], guard: str | None
) -> None:
    chosen = choose({Mode.USER: None}, environment=environment)
    assert isinstance(chosen, Isolation)
    assert chosen.to_wire() == {"isolated": True, "guard": guard, "missing": ["twoUsers"]}


def fake_bwrap(folder: Path, version: str) -> Path:
    program = folder / "bwrap"
    program.write_text(f"#!/bin/sh\necho bubblewrap {version}\n")
    program.chmod(0o755)
    return program


def test_the_systems_bubblewrap_is_preferred(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = fake_bwrap(tmp_path, "0.8.0")
    monkeypatch.delenv("NODUS_BWRAP", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert bubblewrap.find_bwrap() == (program, "")


def test_one_that_is_too_old_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODUS_BWRAP", str(fake_bwrap(tmp_path, "0.6.1")))
    program, problem = bubblewrap.find_bwrap()
    assert program is None
    assert "0.6.1, older than 0.8.0" in problem
