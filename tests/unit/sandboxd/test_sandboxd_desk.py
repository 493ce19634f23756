"""Each command id runs at most once and has one outcome, whatever is repeated, raced or killed."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sandboxd.desk import CommandDesk
from sandboxd.journal import AlreadyBegunError, CommandJournal, EntryState, JournalError
from sandboxd.results import Result, failed_result

from tests.unit.sandboxd.commands import command, execute, living_in, on_desk, pids_in, until

pytestmark = pytest.mark.req("NOD-443")


def test_twenty_starts_of_one_id_at_once_launch_once(tmp_path: Path) -> None:
    effects = tmp_path / "effects"

    async def story(desk: CommandDesk) -> list[Result]:
        once = execute("c1", f"echo run >> {effects}; sleep 0.1; echo done")
        return list(await asyncio.gather(*(desk.submit(once) for _ in range(20))))

    results = on_desk(tmp_path, story)
    assert effects.read_text() == "run\n"
    assert all(result == results[0] for result in results)
    assert (results[0]["state"], results[0]["output"]) == ("exited", "done\n")


def test_the_outcome_is_answered_again_also_by_the_next_daemon(tmp_path: Path) -> None:
    effects = tmp_path / "effects"
    once = execute("c1", f"echo run >> {effects}; exit 4")

    async def story(desk: CommandDesk) -> Result:
        task = desk.submit(once)
        result = await task
        desk.told("c1", task)
        assert await desk.submit(once) == result
        return result

    first = on_desk(tmp_path, story)
    assert on_desk(tmp_path, story) == first
    assert effects.read_text() == "run\n"
    assert first["exitCode"] == 4


def test_the_same_id_with_another_request_is_a_conflict_and_changes_nothing(tmp_path: Path) -> None:
    async def story(desk: CommandDesk) -> tuple[Result, Result, Result]:
        first = desk.submit(execute("c1", "sleep 0.2; echo first"))
        racing = desk.submit(execute("c1", "echo second"))
        conflict = await racing
        desk.told("c1", racing)
        result = await first
        desk.told("c1", first)
        return result, conflict, await desk.submit(execute("c1", "echo third"))

    result, *conflicts = on_desk(tmp_path, story)
    assert result["output"] == "first\n"
    for conflict in conflicts:
        assert (conflict["state"], conflict["reason"]) == ("failed", "conflict")


def test_a_malformed_command_fails_without_a_record_and_goes_on_failing(tmp_path: Path) -> None:
    async def story(desk: CommandDesk) -> list[Result]:
        task = desk.submit(command("c1", "exec", {"command": "a\0b"}))
        first = await task
        desk.told("c1", task)
        return [first, await desk.submit(command("c1", "exec", {"command": "a\0b"}))]

    for result in on_desk(tmp_path, story):
        assert (result["state"], result["reason"]) == ("failed", "invalid")
    assert list((tmp_path / "state" / "commands").iterdir()) == []


def test_without_a_start_record_nothing_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(desk: CommandDesk) -> list[Result]:
        once = execute("c1", f"echo run >> {tmp_path}/effects")
        with monkeypatch.context() as full_disk:
            full_disk.setattr("sandboxd.journal.os.fdatasync", _no_space)
            task = desk.submit(once)
            first = await task
        desk.told("c1", task)
        return [first, await desk.submit(once)]  # told as without effect: it must stay so

    for result in on_desk(tmp_path, story):
        assert (result["state"], result["reason"]) == ("failed", "journal")
    assert not (tmp_path / "effects").exists()


def _no_space(_: int) -> None:
    raise OSError(28, "No space left on device")


@pytest.mark.req("NOD-435")
def test_cancelling_ends_a_running_command_and_keeps_a_waiting_one_from_starting(tmp_path: Path) -> None:
    async def story(desk: CommandDesk) -> list[Result]:
        running = desk.submit(execute("c1", "echo begun; sleep 50"))
        await until(lambda: living_in(tmp_path / "workspace"))
        waiting = desk.submit(execute("c2", f"touch {tmp_path}/never"))
        known = desk.submit(execute("c3", f"touch {tmp_path}/never"), cancelled=True)
        desk.cancel("c2")
        desk.cancel("unknown")
        desk.cancel("c1")
        return list(await asyncio.gather(running, waiting, known))

    running, *waiting = on_desk(tmp_path, story, max_running=1)
    assert (running["state"], running["reason"], running["signal"]) == ("exited", "killed", "SIGTERM")
    assert running["output"] == "begun\n"
    for result in waiting:
        assert (result["state"], result["reason"]) == ("failed", "killed")
    assert not (tmp_path / "never").exists()


def test_no_more_commands_run_at_once_than_allowed(tmp_path: Path) -> None:
    async def story(desk: CommandDesk) -> list[Result]:
        text = "echo x > on.$$; set -- on.*; echo $#; sleep 0.1; rm on.$$"
        return list(await asyncio.gather(*(desk.submit(execute(f"c{n}", text)) for n in range(9))))

    counts = [int(result["output"]) for result in on_desk(tmp_path, story, max_running=3)]
    assert max(counts) <= 3


def test_files_can_be_read_while_all_places_for_commands_are_taken(tmp_path: Path) -> None:
    async def story(desk: CommandDesk) -> Result:
        desk.submit(execute("c1", "sleep 50"))
        await until(lambda: living_in(tmp_path / "workspace"))
        result = await desk.submit(command("f1", "read_file", {"path": "/etc/passwd"}))
        desk.cancel("c1")
        return result

    assert on_desk(tmp_path, story, max_running=1)["state"] == "exited"


@pytest.mark.req("NOD-431")
def test_the_working_folder_is_the_one_asked_for_else_the_workspace(tmp_path: Path) -> None:
    (tmp_path / "workspace" / "sub").mkdir(parents=True)

    async def story(desk: CommandDesk) -> list[Result]:
        asked = [execute("c1", "pwd", cwd="/usr"), execute("c2", "pwd"), execute("c3", "pwd", cwd="sub")]
        return list(await asyncio.gather(*(desk.submit(one) for one in asked)))

    outputs = [result["output"] for result in on_desk(tmp_path, story)]
    assert outputs == ["/usr\n", f"{tmp_path}/workspace\n", f"{tmp_path}/workspace/sub\n"]


def test_a_workspace_that_could_not_be_put_in_its_place_is_found_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "workspace" / "sub").mkdir(parents=True)

    async def story(desk: CommandDesk) -> list[Result]:
        folders = ("/work/x", "/work/x/sub", "/work/x/", "/usr", "sub", "/work/xy")
        asked = [execute(f"c{number}", "pwd", cwd=folder) for number, folder in enumerate(folders)]
        return list(await asyncio.gather(*(desk.submit(one) for one in asked)))

    *found, other = on_desk(tmp_path, story, workspace_called="/work/x")
    here = f"{tmp_path}/workspace"
    assert [result["output"].rstrip("\n") for result in found] == [
        here,
        f"{here}/sub",
        here,
        "/usr",
        f"{here}/sub",
    ]
    assert (other["state"], other["reason"]) == (
        "failed",
        "cwd",
    )  # only the folder itself and what is below it


def test_a_command_adds_to_the_environment_but_not_the_mark(tmp_path: Path) -> None:
    async def story(desk: CommandDesk) -> list[Result]:
        good = execute("c1", "echo $A-$HOME", env={"A": "1", "HOME": "/elsewhere"})
        bad = execute("c2", "true", env={"SANDBOXD_EXEC": "other"})
        return list(await asyncio.gather(desk.submit(good), desk.submit(bad)))

    good, bad = on_desk(tmp_path, story)
    assert good["output"] == "1-/elsewhere\n"
    assert (bad["state"], bad["reason"]) == ("failed", "invalid")


_DIES_WHILE_RUNNING = """
import asyncio, sys
from pathlib import Path
from tests.unit.sandboxd.commands import command_desk, execute
async def main():
    async with command_desk(Path(sys.argv[1]), Path(sys.argv[2])) as desk:
        await desk.submit(execute("ended", "echo ended >> effects"))
        await desk.submit(execute("running", "echo running >> effects; touch begun; sleep 60"))
asyncio.run(main())
"""


def test_a_daemon_killed_while_a_command_runs_leaves_it_lost_and_never_repeats_it(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    daemon = subprocess.Popen(
        [sys.executable, "-c", _DIES_WHILE_RUNNING, str(tmp_path / "state"), str(workspace)],
        env={**os.environ, "PYTHONPATH": f"{Path.cwd()}/sandbox_images:{Path.cwd()}"},
    )
    _wait_for(workspace / "begun", daemon)
    os.kill(daemon.pid, signal.SIGKILL)
    daemon.wait()

    async def story(desk: CommandDesk) -> list[Result]:
        ended = execute("ended", "echo ended >> effects")
        running = execute("running", "echo running >> effects; touch begun; sleep 60")
        return [await desk.submit(ended), await desk.submit(running), await desk.submit(running)]

    ended, *lost = on_desk(tmp_path, story)
    assert (ended["state"], ended["exitCode"]) == ("exited", 0)
    for result in lost:
        assert (result["state"], result["reason"]) == ("lost", "daemon_restarted")
    assert (workspace / "effects").read_text() == "ended\nrunning\n"
    for pid in pids_in(workspace):  # as pid 1 the daemon would have taken it along
        os.kill(pid, signal.SIGKILL)


def _wait_for(path: Path, process: subprocess.Popen[bytes]) -> None:
    until_s = time.monotonic() + 30
    while not path.exists():
        assert process.poll() is None, "the daemon ended by itself"
        assert time.monotonic() < until_s, f"{path} did not appear"
        time.sleep(0.01)


def opened(folder: Path, keep_ended: int = 200) -> CommandJournal:
    journal = CommandJournal(folder, keep_ended)
    journal.open()
    return journal


def test_the_folder_belongs_to_one_daemon_and_to_its_user_alone(tmp_path: Path) -> None:
    journal = opened(tmp_path / "state")
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700
    with pytest.raises(JournalError, match="Another daemon"):
        opened(tmp_path / "state")
    journal.close()
    (tmp_path / "link").symlink_to(tmp_path / "state")
    with pytest.raises(JournalError, match="not a folder of the daemon's user"):
        opened(tmp_path / "link")


def test_an_id_can_be_begun_once(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    journal.begin("a/../b\n", "d1", "exec", "boot")
    with pytest.raises(AlreadyBegunError):
        journal.begin("a/../b\n", "d1", "exec", "boot")


def test_a_start_record_cut_by_a_crash_reads_as_lost(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    journal.begin("c1", "d1", "exec", "boot")
    journal.close()
    (start,) = (tmp_path / "commands").glob("*.start")
    start.write_bytes(b'{"v": 1, "id"')
    entry = opened(tmp_path).find("c1")
    assert entry is not None
    assert entry.state is EntryState.ENDED


def test_only_told_outcomes_are_evicted_and_their_ids_stay_taken(tmp_path: Path) -> None:
    journal = opened(tmp_path, keep_ended=2)
    for number in range(5):
        journal.begin(f"c{number}", "d1", "exec", "boot")
        journal.end(f"c{number}", failed_result("x", "y"))
    for number in (0, 1, 2, 3):
        journal.told(f"c{number}")
    states = [journal.find(f"c{number}").state for number in range(5)]  # type: ignore[union-attr]
    assert states == ["evicted", "evicted", "ended", "ended", "ended"]
    journal.close()
    again = opened(tmp_path)
    assert again.find("c0") is not None
    assert again.find("c0").state is EntryState.EVICTED  # type: ignore[union-attr]
    assert again.outcome("c0") is None
    assert again.outcome("c4") is not None


def test_large_outcomes_are_evicted_by_size_and_a_full_disk_forgets_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sandboxd.journal.KEEP_BYTES", 1000)
    journal = opened(tmp_path)
    for number in range(3):
        journal.begin(f"c{number}", "d1", "exec", "boot")
        journal.end(f"c{number}", failed_result("x", "y" * 600))
    journal.told("c0")
    with monkeypatch.context() as full_disk:
        full_disk.setattr("sandboxd.journal.os.fdatasync", _no_space)
        journal.told("c1")
    assert journal.outcome("c0") is not None
    journal.told("c2")
    assert [journal.outcome(f"c{number}") is not None for number in range(3)] == [False, False, True]


@pytest.mark.parametrize("spoiled", ["*.end", "*.*"], ids=["outcome", "both"])
def test_a_command_whose_record_cannot_be_read_is_lost_and_not_run_again(
    tmp_path: Path, spoiled: str
) -> None:
    once = execute("c1", f"echo run >> {tmp_path}/effects")

    async def submit(desk: CommandDesk) -> Result:
        return await desk.submit(once)

    on_desk(tmp_path, submit)
    for path in (tmp_path / "state" / "commands").glob(spoiled):
        path.write_bytes(b"\x00" * 20)
    result = on_desk(tmp_path, submit)
    assert (result["state"], result["reason"]) == ("lost", "internal")
    assert (tmp_path / "effects").read_text() == "run\n"


def test_an_evicted_command_is_not_run_again(tmp_path: Path) -> None:
    once = execute("c1", f"echo run >> {tmp_path}/effects")

    async def first(desk: CommandDesk) -> None:
        await desk.submit(once)

    on_desk(tmp_path, first)
    (end,) = (tmp_path / "state" / "commands").glob("*.end")
    (start,) = (tmp_path / "state" / "commands").glob("*.start")
    (tmp_path / "state" / "evicted").write_text(json.dumps([end.stem, once.digest]) + "\n[half a li")
    end.unlink()
    start.unlink()

    async def again(desk: CommandDesk) -> Result:
        return await desk.submit(once)

    result = on_desk(tmp_path, again)
    assert (result["state"], result["reason"]) == ("lost", "evicted")
    assert (tmp_path / "effects").read_text() == "run\n"
