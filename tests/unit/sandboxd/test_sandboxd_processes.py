"""Starting commands, when they are over, and stopping their whole process tree (FLD-09)."""

import asyncio
import os
import resource
from pathlib import Path

import pytest
from sandboxd.execcore import execution
from sandboxd.execcore.execution import Execution
from sandboxd.execcore.oom import was_out_of_memory
from sandboxd.execcore.spawn import SPARED
from sandboxd.execcore.spec import ExecSpec, ExecState, Outcome, SpawnError, StopReason

from tests.unit.sandboxd.commands import living_in, process_host, run, run_all, shell, until

FLD_09 = "(sleep 40; echo late > {folder}/late.txt) & setsid sleep 41 & nohup sleep 42 & sleep 43"  # the case's own line


def run_and_stop(spec: ExecSpec, folder: Path, processes: int) -> Outcome:
    """Starts a command, cancels it once that many processes are there."""

    async def story() -> Outcome:
        async with process_host() as host:
            execution: Execution = host.start(spec)
            ending = asyncio.create_task(host.run(execution))
            await until(lambda: len(living_in(folder)) >= processes)
            execution.stop(StopReason.KILLED)
            return await ending

    return asyncio.run(story())


@pytest.mark.req("FLD-09", "NOD-432")
def test_a_timeout_ends_every_process_and_no_neighbour(tmp_path: Path) -> None:
    tree, beside = tmp_path / "tree", tmp_path / "beside"
    tree.mkdir()
    beside.mkdir()
    ended, neighbour = run_all(
        shell("sh -c '" + FLD_09.format(folder=tree) + "'", tree, start_to_end_s=4.0),
        shell("sleep 6; echo neighbour", beside),
    )
    assert (ended.state, ended.reason) == (ExecState.EXITED, "timeout")
    assert ended.duration_s >= 4.0
    assert living_in(tree) == []
    assert not (tree / "late.txt").exists()
    assert (neighbour.exit_code, neighbour.captured.head) == (0, b"neighbour\n")


@pytest.mark.req("FLD-09", "NOD-435", "NOD-436")
def test_a_cancellation_ends_every_process_and_is_told_apart_from_a_timeout(tmp_path: Path) -> None:
    outcome = run_and_stop(shell("echo so far; " + FLD_09.format(folder=tmp_path), tmp_path), tmp_path, 6)
    assert (outcome.reason, outcome.signal) == ("killed", 15)
    assert outcome.captured.head == b"so far\n"
    assert living_in(tmp_path) == []


@pytest.mark.req("FLD-09")
@pytest.mark.parametrize(
    "command",
    [
        "setsid nohup sh -c 'trap \"\" TERM HUP; while :; do sleep 1; done' >/dev/null 2>&1 & sleep 99",
        "(setsid sh -c 'sleep 98 & sleep 97' &) ; sleep 99",
        "python3 -c 'import os,time\nif os.fork()==0:\n os.setsid()\n if os.fork()==0: time.sleep(96)\n"
        " os._exit(0)\ntime.sleep(99)'",
        "trap '' TERM; while :; do (sleep 95 &) ; sleep 0.05; done",
    ],
    ids=["setsid-nohup-no-term", "orphan-of-a-session", "double-fork", "starts-new-ones"],
)
def test_what_detaches_or_ignores_the_polite_signal_is_ended_by_force(tmp_path: Path, command: str) -> None:
    outcome = run_and_stop(shell(command, tmp_path, grace_s=0.3), tmp_path, 2)
    assert outcome.reason == "killed"
    assert living_in(tmp_path) == []


@pytest.mark.req("FLD-09")
def test_a_command_that_has_itself_traced_and_stops_is_not_over(tmp_path: Path) -> None:
    code = "import ctypes, os, signal; ctypes.CDLL(None).ptrace(0); os.kill(os.getpid(), signal.SIGSTOP)"
    outcome = run(shell(f"exec python3 -c '{code}'", tmp_path, start_to_end_s=2.0, grace_s=0.2))
    assert (outcome.reason, outcome.duration_s >= 2.0) == ("timeout", True)
    assert living_in(tmp_path) == []


@pytest.mark.req("FLD-09")
def test_the_polite_signal_comes_first_and_a_handler_may_end_the_command(tmp_path: Path) -> None:
    outcome = run_and_stop(
        shell("trap 'echo goodbye; exit 7' TERM; touch ready; while :; do sleep 0.05; done", tmp_path),
        tmp_path,
        1,
    )
    assert outcome.reason == "killed"
    if outcome.signal is None:  # the cancellation may come before the trap is set
        assert outcome.exit_code == 7
        assert outcome.captured.head.endswith(b"goodbye\n")


@pytest.mark.req("FLD-09")
def test_a_longer_grace_than_allowed_is_not_given(tmp_path: Path) -> None:
    """An hour of grace would outlast this test."""
    outcome = run(
        shell("trap '' TERM; while :; do sleep 0.1; done", tmp_path, start_to_end_s=0.2, grace_s=3600)
    )
    assert outcome.signal == 9


@pytest.mark.req("FLD-09")
def test_a_stopped_process_is_ended_too(tmp_path: Path) -> None:
    outcome = run(shell("kill -STOP $$", tmp_path, start_to_end_s=0.2))
    assert (outcome.reason, outcome.signal) == ("timeout", 15)


def test_a_command_is_over_when_its_leader_dies_not_when_its_pipe_closes(tmp_path: Path) -> None:
    async def story() -> Outcome:
        async with process_host() as host:
            outcome = await host.run(host.start(shell("echo hi; sleep 6 & exit 3", tmp_path)))
            assert len(living_in(tmp_path)) == 1  # it goes on, and nothing waits for it
            return outcome

    outcome = asyncio.run(story())
    assert (outcome.exit_code, outcome.output_open, outcome.captured.head) == (3, True, b"hi\n")


def test_output_that_comes_just_after_the_leader_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution, "_LINGER_S", 10.0)  # on a busy machine "just after" is later
    outcome = run(shell("echo late > >(sleep 0.01; cat)", tmp_path))
    assert (outcome.captured.head, outcome.output_open) == (b"late\n", False)


def test_a_writer_that_never_stops_does_not_hold_the_outcome(tmp_path: Path) -> None:
    outcome = run(shell("timeout 3 yes & sleep 0.2; exit 0", tmp_path))
    assert (outcome.exit_code, outcome.output_open) == (0, True)
    assert outcome.captured.raw_bytes > 0


def test_what_a_command_starts_with(tmp_path: Path) -> None:
    outcome = run(
        shell(
            "pwd; umask; cat; ls /proc/self/fd | tr '\\n' ' '; env | cut -d= -f1 | sort | tr '\\n' ' '",
            tmp_path,
        )
    )
    lines = outcome.captured.head.decode().splitlines()
    assert lines[:2] == [str(tmp_path), "0022"]
    assert lines[2] == "0 1 2 3 HOME LANG PATH PWD SANDBOXD_EXEC SHLVL _ "


def test_a_command_leads_a_session_of_its_own(tmp_path: Path) -> None:
    outcome = run(shell("cut -d' ' -f1,5,6 /proc/$$/stat", tmp_path))
    pid, group, session = outcome.captured.head.split()
    assert pid == group == session


def test_standard_input_of_any_size_is_read_without_anybody_feeding_it(tmp_path: Path) -> None:
    outcome = run(shell("wc -c", tmp_path, stdin=b"x" * 3_000_000))
    assert outcome.captured.head == b"3000000\n"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"cwd": "/no/such/folder"}, "cwd"),
        ({"cwd": "/etc/passwd"}, "cwd"),
        ({"argv": ("/no/such/program",)}, "spawn"),
        ({"argv": ("/bin/bash", "-c", "a\0b")}, "invalid"),
        ({"argv": ("/bin/bash", "-c", "\ud83c")}, "invalid"),
        ({"argv": ("/bin/bash", "-c", "x" * 200_000)}, "invalid"),
    ],
)
def test_what_cannot_be_started_says_so_and_leaves_nothing_open(changes: dict, reason: str) -> None:
    async def story() -> SpawnError:
        async with process_host() as host:
            before = set(os.listdir("/proc/self/fd"))
            with pytest.raises(SpawnError) as caught:
                host.start(ExecSpec(**{"argv": ("/bin/true",), "cwd": "/", "env": {}, **changes}))
            assert set(os.listdir("/proc/self/fd")) == before
            return caught.value

    assert asyncio.run(story()).reason == reason


def test_death_by_signal_nine_is_want_of_memory_only_when_the_kernel_counted_one(tmp_path: Path) -> None:
    outcome = run(shell("kill -9 $$", tmp_path))
    assert (outcome.signal, outcome.exit_code, outcome.reason) == (9, None, None)
    assert was_out_of_memory(None, 9, before=4, after=5)
    assert was_out_of_memory(137, None, before=4, after=5)  # the shell tells of its child
    assert was_out_of_memory(None, 9, before=None, after=None)  # nobody counts: the signal alone has to do
    assert not was_out_of_memory(137, None, before=None, after=None)
    assert not was_out_of_memory(1, None, before=4, after=5)


def test_the_kernel_ends_a_command_before_the_daemon_when_memory_runs_out(tmp_path: Path) -> None:
    waiting = (
        "until [ $(cat /proc/$$/oom_score_adj) = 500 ]; do sleep 0.01; done; cat /proc/self/oom_score_adj"
    )
    assert run(shell(waiting, tmp_path, start_to_end_s=20)).captured.head == b"500\n"


def test_usage_counts_the_children_a_command_waited_for(tmp_path: Path) -> None:
    outcome = run(shell("sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'; true", tmp_path))
    assert outcome.usage.cpu_s > 0.02
    assert outcome.usage.max_rss_kib > 500


def test_a_hundred_commands_leave_no_descriptor_and_no_zombie(tmp_path: Path) -> None:
    async def story() -> None:
        async with process_host() as host:
            before = len(os.listdir("/proc/self/fd"))
            for _ in range(5):
                await asyncio.gather(*(host.run(host.start(shell("true", tmp_path))) for _ in range(20)))
            assert len(os.listdir("/proc/self/fd")) == before
            children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
            states = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] for pid in children]
            assert "Z" not in states

    asyncio.run(story())


def test_pipes_that_background_processes_hold_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sandboxd.execcore.host._MAX_OPEN_TAILS", 3)

    async def story() -> None:
        async with process_host() as host:
            before = len(os.listdir("/proc/self/fd"))
            for _ in range(6):
                await host.run(host.start(shell("sleep 5 & exit 0", tmp_path)))
            assert len(os.listdir("/proc/self/fd")) - before == 3

    asyncio.run(story())


def test_commands_leave_the_last_processes_of_their_user_to_saves_and_file_requests(tmp_path: Path) -> None:
    """Else one that has filled them all keeps its folder from being saved when the sandbox stops."""
    before = resource.getrlimit(resource.RLIMIT_NPROC)
    resource.setrlimit(resource.RLIMIT_NPROC, (20_000, before[1]))
    try:
        specs = [shell("ulimit -Su", tmp_path, spares=spares) for spares in (True, False)]
        said = [int(outcome.captured.head) for outcome in run_all(*specs)]
        assert said == [20_000 - SPARED, 20_000]
        assert resource.getrlimit(resource.RLIMIT_NPROC)[0] == 20_000
    finally:
        resource.setrlimit(resource.RLIMIT_NPROC, before)


def test_of_a_limit_that_is_small_nothing_is_kept_back(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_NPROC)
    if os.geteuid() != 0:
        pytest.skip("others than root could start nothing within such a limit")
    resource.setrlimit(resource.RLIMIT_NPROC, (SPARED, before[1]))
    try:
        assert int(run(shell("ulimit -Su", tmp_path, spares=True)).captured.head) == SPARED
    finally:
        resource.setrlimit(resource.RLIMIT_NPROC, before)
