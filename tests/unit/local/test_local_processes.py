"""Processes of the local cloud, and the folder in which it keeps what it has."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from localstack.daemons import free_port, is_free
from localstack.paths import State
from localstack.processes import Daemon, ProcessError
from localstack.scripted.recorder import LOG_NAME, Recorder
from localstack.turns import turn


@pytest.fixture
def state(tmp_path: Path) -> State:
    made = State(tmp_path / "state")
    made.create()
    return made


def daemon(state: State, program: str) -> Daemon:
    command = [sys.executable, "-c", program]
    return Daemon("probe", command, {}, state.run, state.logs / "probe.log", state.folder, stop_s=5)


def test_a_process_that_ends_at_once_does_not_count_as_running(state: State) -> None:
    """Its pid file must not be taken for that of a process whose mark is as unreadable as its own."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    probe = daemon(state, "")
    probe.pid_file.write_text(json.dumps({"pid": gone.pid, "started": None}))
    assert probe.pid() is None


def test_a_command_that_cannot_run_says_so(state: State) -> None:
    missing = Daemon("probe", ["/nonexistent"], {}, state.run, state.logs / "probe.log", state.folder)
    with pytest.raises(ProcessError, match="cannot start probe"):
        missing.start()
    assert missing.pid() is None


HELD = """
import socket, sys, time
ground = bytearray(800 * 1024 * 1024)  # takes the system a while to take back
listening = socket.create_server(("127.0.0.1", int(sys.argv[1])))
open("written", "w").close()
time.sleep(60)
"""


@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
def test_a_killed_process_does_not_run_and_its_successor_gets_its_port(state: State) -> None:
    """Also at once after the kill, while the system still takes back what the killed one held."""
    port = free_port()
    command = [sys.executable, "-c", HELD, str(port)]
    probe = Daemon("probe", command, {}, state.run, state.logs / "probe.log", state.folder, stop_s=20)
    first = probe.start()
    try:
        probe.await_ready((state.folder / "written").exists, 20)
        (state.folder / "written").unlink()
        os.kill(first, signal.SIGKILL)
        assert probe.pid() is None
        second = probe.start()
        probe.await_ready((state.folder / "written").exists, 20)  # else it has ended: its port was taken
        assert probe.pid() == second != first
    finally:
        probe.stop()
    assert is_free(port)


@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")
def test_what_a_process_writes_is_its_owner_s_only(state: State) -> None:
    """Whatever the mask of the person who starts it."""
    before = os.umask(0o022)
    try:
        probe = daemon(state, "open('written', 'w').close(); import time; time.sleep(60)")
        probe.start()
        probe.await_ready((state.folder / "written").exists, 20)
    finally:
        os.umask(before)
        probe.stop()
    assert (state.folder / "written").stat().st_mode & 0o777 == 0o600


def test_a_folder_that_was_open_is_closed_again(state: State) -> None:
    for part in state.parts:
        part.chmod(0o755)
    state.create()
    assert {part.stat().st_mode & 0o777 for part in state.parts} == {0o700}


def test_cleaning_leaves_what_is_not_the_cloud_s(state: State) -> None:
    foreign = state.folder / "thesis.txt"
    foreign.write_text("mine")
    state.cloud_file.write_text("{}")
    state.remove()
    assert list(state.folder.iterdir()) == [foreign]
    foreign.unlink()
    state.remove()
    assert not state.folder.exists()


HOLDER = """
import sys
from pathlib import Path
from localstack.paths import State
from localstack.turns import turn
with turn(State(Path(sys.argv[1]))):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_command_waits_for_the_one_before(state: State, tmp_path: Path) -> None:
    words = [sys.executable, "-c", HOLDER, str(state.folder)]
    environment = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    first = subprocess.Popen(words, env=environment, text=True, **pipes)  # type: ignore[call-overload]
    assert first.stdout.readline() == "held\n"
    second = subprocess.Popen(words, env=environment, text=True, **pipes)  # type: ignore[call-overload]
    try:
        assert "waiting" in second.stderr.readline()
        state.remove()  # as `clean` does: what is locked then is no longer the file that others find
        first.communicate()
        assert second.stdout.readline() == "held\n"
        assert state.lock_file.exists()
        second.communicate()
        with turn(state):
            pass
    finally:
        for process in (first, second):
            process.kill()
            process.communicate()


def test_the_record_of_prompts_is_bounded_and_kept(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path, limit=200)
    for number in range(1, 6):
        recorder.write({"number": number}, b"x" * 100)
    assert (tmp_path / LOG_NAME).stat().st_size <= 200
    assert [entry["number"] for entry in recorder.requests(0, 10)] == [4, 5]
