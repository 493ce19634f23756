"""The saved folder of a Sandbox of one's own: when it is saved, what is restored, and what people see of it."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from nodus_core.kernel.errors import Refusal
from nodus_core.kernel.saving import EVERY
from nodus_core.testing.scripted_sandbox import RUNNING, exited

from tests.unit.conversations.own_machine import FOLDER, OwnMachine

LATER = EVERY / timedelta(minutes=1) + 5
Behaves = Callable[[str, dict[str, Any]], dict[str, Any]]


def made(behaviour: Behaves = lambda kind, request: exited("out\n"), **spec: Any) -> OwnMachine:
    machine = OwnMachine(behaviour)
    machine.create(continuity=FOLDER, **spec)
    machine.minutes(3)
    return machine


def failing(*kinds: str, reason: str = "too_large") -> Behaves:
    return lambda kind, request: (
        {"state": "failed", "reason": reason, "message": "It is too large."}
        if kind in kinds
        else exited("out\n")
    )


@pytest.mark.req("NOD-168", "NOD-170", "NOD-172", "NOD-413", "NODQ-66")
def test_a_normal_stop_saves_and_the_next_start_restores() -> None:
    machine = made()
    assert "lastSave" not in machine.status
    command = machine.run("k")
    machine.minutes(3)
    machine.stop()
    machine.minutes(5)
    assert machine.stands == ("Paused", "Stopped")
    first = machine.status["lastSave"]
    assert (first["state"], first["entries"], first["at"]) == ("Saved", 1, first["savedAt"])
    assert first["savedAt"] in machine.status["message"]
    machine.start()
    machine.minutes(5)
    assert machine.stands == ("Running", None)
    assert machine.status["restoredFrom"] == first["at"]
    assert machine.folder == [command]
    machine.stop()
    machine.minutes(5)
    assert machine.status["lastSave"]["at"] > first["at"]


@pytest.mark.req("NOD-171", "NOD-170")
def test_after_a_loss_the_last_checkpoint_is_restored() -> None:
    machine = made()
    before = machine.run("before")
    machine.minutes(LATER)
    checkpoint = machine.status["lastSave"]
    assert checkpoint["state"] == "Saved"
    machine.run("after")
    machine.minutes(1)
    machine.kill()
    machine.minutes(8)
    assert machine.stands == ("Paused", "SandboxLost")
    assert checkpoint["at"] in machine.status["message"]
    machine.start()
    machine.minutes(5)
    assert (machine.folder, machine.status["restoredFrom"]) == ([before], checkpoint["at"])


@pytest.mark.req("NOD-168")
def test_a_folder_in_which_nothing_was_done_is_saved_once() -> None:
    machine = made()
    machine.minutes(3 * LATER)
    assert "lastSave" not in machine.status
    machine.run("k")
    machine.minutes(3 * LATER)
    saved_at = machine.status["lastSave"]["at"]
    machine.minutes(3 * LATER)
    assert machine.status["lastSave"]["at"] == saved_at
    assert len(machine.saved) == 1


@pytest.mark.req("NOD-168")
def test_a_command_at_work_does_not_keep_its_folder_from_being_saved() -> None:
    machine = made(lambda kind, request: RUNNING if kind == "exec" else exited())
    machine.run("k")
    machine.minutes(2 * LATER)
    assert len(machine.saved) == 2
    machine.minutes(2 * LATER)
    assert len(machine.saved) == 2, "only the last two are kept"


@pytest.mark.req("NOD-169", "NOD-170")
def test_a_save_that_is_not_completed_leaves_the_one_before() -> None:
    words: list[str] = []

    def behaviour(kind: str, request: dict[str, Any]) -> dict[str, Any]:
        return failing(*words)(kind, request)

    machine = made(behaviour)
    first = machine.run("first")
    machine.minutes(LATER)
    complete = machine.status["lastSave"]
    words.append("save")
    machine.run("second")
    machine.minutes(3)
    machine.stop()
    machine.minutes(5)
    assert machine.stands == ("Paused", "Stopped")
    shown = machine.status["lastSave"]
    assert (shown["state"], shown["reason"], shown["savedAt"]) == ("Incomplete", "too_large", complete["at"])
    assert len(machine.saved) == 1
    machine.start()
    machine.minutes(5)
    assert machine.folder == [first]


@pytest.mark.req("NOD-169")
def test_a_save_that_takes_too_long_is_not_waited_for() -> None:
    machine = made(lambda kind, request: RUNNING if kind == "save" else exited("out\n"))
    machine.run("k")
    machine.minutes(3)
    machine.stop()
    machine.minutes(6)
    assert machine.stands == ("Paused", "Stopped")
    assert (machine.status["lastSave"]["state"], machine.status["lastSave"]["reason"]) == (
        "Incomplete",
        "window",
    )
    assert "savedAt" not in machine.status["lastSave"]
    assert machine.saved == []


@pytest.mark.req("NOD-169")
def test_what_the_daemon_says_of_a_save_is_compared_with_the_store() -> None:
    machine = made()
    machine.run("k")
    machine.minutes(3)
    machine.world.sandboxes.archives.put = lambda url, content: None  # type: ignore[method-assign]
    machine.stop()
    machine.minutes(5)
    assert (machine.status["lastSave"]["state"], machine.status["lastSave"]["reason"]) == (
        "Incomplete",
        "transfer",
    )


@pytest.mark.req("NOD-169", "NOD-399")
@pytest.mark.parametrize(
    ("spec", "reason"), [({"idleTimeout": "15m"}, "Idle"), ({"maxCostUSD": "0.02"}, "MaxCostReached")]
)
def test_a_stop_by_itself_comes_after_a_save(spec: dict[str, str], reason: str) -> None:
    machine = made(**spec)
    command = machine.run("k")
    machine.minutes(60)
    assert machine.stands == ("Paused", reason)
    assert machine.status["lastSave"]["state"] == "Saved"
    assert machine.saved[-1].decode().split() == [command]
    if "maxCostUSD" in spec:
        assert float(machine.status["costUSD"]) <= float(spec["maxCostUSD"])


@pytest.mark.req("NOD-169")
def test_a_budget_that_pays_no_more_has_paid_for_the_last_save() -> None:
    machine = OwnMachine()
    machine.budget("0.012")
    machine.create(continuity=FOLDER)
    machine.minutes(3)
    machine.run("k")
    machine.minutes(60)
    assert machine.stands == ("Paused", "BudgetBlocked")
    assert machine.status["lastSave"]["state"] == "Saved"
    account = machine.world.outside.accounts.account("budget")
    assert account is not None
    assert account.available >= 0


@pytest.mark.req("NOD-169")
def test_a_damaged_save_is_dropped_and_the_one_before_is_restored() -> None:
    machine = made()
    first = machine.run("first")
    machine.minutes(LATER)
    machine.run("second")
    machine.minutes(LATER)
    archives = machine.world.sandboxes.archives.objects
    newest = max(archives)
    archives[newest] = b"x" * len(archives[newest])
    machine.kill()
    machine.minutes(8)
    machine.start()
    machine.minutes(5)
    assert machine.stands == ("Paused", "SandboxStartFailed")
    assert "could not be restored (damaged)" in machine.status["message"]
    machine.start()
    machine.minutes(5)
    assert machine.folder == [first]


def test_nothing_is_run_before_the_folder_is_there() -> None:
    machine = made(lambda kind, request: RUNNING if kind == "restore" else exited("out\n"))
    machine.run("k")
    machine.minutes(3)
    machine.stop()
    machine.minutes(5)
    machine.start()
    machine.minutes(2)
    assert machine.stands[0] == "Pending"
    with pytest.raises(Refusal, match="is Pending"):
        machine.run("early")
    machine.minutes(15)
    assert machine.stands == ("Paused", "SandboxStartFailed")


def test_somebody_who_wants_it_again_while_it_is_saved_has_it_as_it_is() -> None:
    wanted: list[str] = []

    def behaviour(kind: str, request: dict[str, Any]) -> dict[str, Any]:
        if kind == "save" and not wanted:
            wanted.append("again")
            machine.start()
        return exited("out\n")

    machine = made(behaviour)
    machine.run("k")
    machine.minutes(3)
    machine.stop()
    machine.minutes(5)
    assert machine.stands == ("Running", None)
    assert len(machine.world.sandboxes.daemons) == 1


@pytest.mark.req("NOD-173")
def test_deleting_it_removes_what_was_saved() -> None:
    machine = made()
    machine.run("k")
    machine.minutes(LATER)
    machine.stop()
    machine.minutes(5)
    assert len(machine.saved) == 2
    machine.delete()
    machine.minutes(5)
    assert machine.saved == []


@pytest.mark.req("NODQ-65")
def test_without_continuity_nothing_is_saved() -> None:
    machine = OwnMachine()
    machine.create()
    machine.minutes(3)
    machine.run("k")
    machine.minutes(LATER)
    machine.stop()
    machine.minutes(5)
    assert ("lastSave" in machine.status, machine.saved) == (False, [])
    machine.start()
    machine.minutes(5)
    assert machine.folder == []


def test_a_folder_outside_of_the_working_folder_is_refused_by_name() -> None:
    with pytest.raises(Refusal, match=r"spec\.continuity\.stateDir"):
        OwnMachine().create(continuity={"mode": "Snapshotted", "stateDir": "/data"})
