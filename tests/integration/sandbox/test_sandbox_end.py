"""How a sandbox ends: with its agent, with its first process, politely; and what its limits stop."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.sandbox.bench import Driver, Guest, alive, running_with, wait_until
from tests.integration.sandbox.conftest import MODES, start_driver

pytestmark = pytest.mark.req("NOD-044", "FLD-09")

MIB = 1024 * 1024


@pytest.fixture(params=MODES)
def own_driver(request: pytest.FixtureRequest) -> Iterator[Driver]:
    """A driver that the test may kill."""
    started = start_driver(request.param)
    try:
        yield started
    finally:
        started.discard()


def start_tree(guest: Guest, word: str) -> list[int]:
    """Processes in the ways that escape a process group; answers their pids on the machine."""
    # Nothing keeps the command's output open, or it would be waited for.
    guest.sh(
        f"(sleep {word}1 & setsid sleep {word}2 & nohup sleep {word}3 & (setsid env -i /bin/sleep {word}4 &)) "
        ">/dev/null 2>&1"
    )
    wait_until(lambda: len(running_with(f"sleep\0{word}")) == 4, "the four sleeps run")
    return running_with(f"sleep\0{word}")


def test_kill_of_the_agent_ends_everything(own_driver: Driver) -> None:
    """The life line: after the drop to another user nothing else of the agent's reaches the sandbox."""
    guests = [own_driver.start(), own_driver.start()]
    pids = [pid for n, guest in enumerate(guests) for pid in start_tree(guest, f"8{n}88.")]
    os.kill(own_driver.process.pid, signal.SIGKILL)
    own_driver.process.wait()
    for pid in [*pids, *(guest.pid for guest in guests), *(guest.bwrap for guest in guests)]:
        wait_until(lambda pid=pid: not alive(pid), f"process {pid} ends")


def test_kill_of_bubblewrap_is_noticed_and_ends_everything(driver: Driver) -> None:
    guest = driver.start()
    pids = start_tree(guest, "8288.")
    os.kill(guest.bwrap, signal.SIGKILL)
    wait_until(lambda: driver.ask("poll", id=guest.sandbox_id)["code"] is not None, "the launcher sees it")
    assert driver.ask("close", id=guest.sandbox_id) == {"left": False}
    assert not any(alive(pid) for pid in [*pids, guest.pid])


def test_the_end_of_the_daemon_is_the_end_of_all(driver: Driver) -> None:
    guest = driver.start()
    pids = start_tree(guest, "8388.")
    os.kill(guest.pid, signal.SIGKILL)
    wait_until(lambda: driver.ask("poll", id=guest.sandbox_id)["code"] is not None, "bubblewrap ends")
    assert not any(alive(pid) for pid in pids)
    driver.ask("close", id=guest.sandbox_id)


def test_the_end_is_polite_first(driver: Driver) -> None:
    guest = driver.start()
    guest.sh(
        "(trap 'echo bye > /workspace/bye; exit' TERM; while :; do sleep 0.05; done) >/dev/null 2>&1 & echo"
    )
    driver.ask("ask_to_end", id=guest.sandbox_id)
    said = guest.folder / "workspace" / "bye"
    wait_until(lambda: said.exists() and said.read_text() == "bye\n", "the command got SIGTERM")
    driver.ask("close", id=guest.sandbox_id)


def test_what_ignores_the_polite_signal_ends_by_force(driver: Driver) -> None:
    guest = driver.start()
    guest.sh("(trap '' TERM HUP INT; exec setsid sleep 8488.1) >/dev/null 2>&1 &")
    wait_until(lambda: running_with("8488.1"), "it runs")
    driver.ask("ask_to_end", id=guest.sandbox_id)
    driver.ask("close", id=guest.sandbox_id)
    assert not running_with("8488.1")


def test_other_sandboxes_are_not_touched(driver: Driver, guest: Guest) -> None:
    other = driver.start()
    guest.sh("nohup sleep 8588.1 >/dev/null 2>&1 &")
    driver.ask("close", id=other.sandbox_id)
    assert running_with("8588.1")
    assert guest.sh("pkill -f [8]588.1; echo neighbour").out == "neighbour\n"


def test_an_id_is_used_once(driver: Driver, guest: Guest) -> None:
    answer = driver.ask("start", id=guest.sandbox_id, allowed=[], limits={}, variables={})
    assert "exists" in answer["error"]
    assert guest.sh("echo unharmed").out == "unharmed\n"


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", ".hidden", "a" * 200, "x\n"])
def test_an_id_that_is_a_path_is_refused(driver: Driver, name: str) -> None:
    assert "is not an id" in driver.ask("start", id=name, allowed=[], limits={}, variables={})["error"]


def test_a_fork_bomb_is_contained(driver: Driver) -> None:
    guest = driver.start(limits={"processes": 60})
    code = (
        "import os, time\n"
        "made = 0\n"
        "try:\n"
        "    while made < 500:\n"
        "        if os.fork() == 0: time.sleep(60); os._exit(0)\n"
        "        made += 1\n"
        "except OSError as error: print(made, error.errno, flush=True)\n"
        "os.kill(-1, 9)"
    )
    made, number = guest.python(code).out.split()
    assert int(made) < 60
    assert number == "11"
    assert guest.sh("echo still here").out == "still here\n"
    driver.ask("close", id=guest.sandbox_id)


def test_a_bomb_in_one_sandbox_leaves_room_in_the_next(driver: Driver) -> None:
    """Even where both are the same user of the host: each counts its own."""
    bombed, other = driver.start(limits={"processes": 40}), driver.start(limits={"processes": 40})
    bomb = (
        "import os, time\n"
        "try:\n"
        "  while True:\n"
        "    if os.fork() == 0: time.sleep(600); os._exit(0)\n"
        "except OSError: pass"
    )
    bombed.argv("bash", "-c", 'python3 -c "$0" >/dev/null 2>&1', bomb)
    assert other.sh("for i in 1 2 3 4 5 6 7 8; do sleep 0.1 & done; wait; echo fine").out == "fine\n"
    for each in (bombed, other):
        driver.ask("close", id=each.sandbox_id)


def test_memory_beyond_the_limit_ends_the_hog_and_not_the_daemon(driver: Driver) -> None:
    if "memory" not in driver.limits:
        pytest.skip(f"no memory controller for this user in mode {driver.mode}: it is reported as missing")
    guest = driver.start(limits={"memory_bytes": 192 * MIB})
    done = guest.python("x = bytearray(400 * 1024 * 1024); print('had it')")
    assert (done.code, done.out) == (-9, "")
    assert guest.sh("echo still here").out == "still here\n"
    driver.ask("close", id=guest.sandbox_id)


def test_tmp_is_bounded(driver: Driver) -> None:
    guest = driver.start(limits={"tmp_bytes": 8 * MIB})
    for place in ("/tmp", "/dev/shm"):
        done = guest.sh(f"head -c 20M /dev/zero > {place}/big")
        assert "No space left" in done.err
    driver.ask("close", id=guest.sandbox_id)


def test_files_are_bounded(driver: Driver) -> None:
    guest = driver.start(limits={"file_bytes": 1 * MIB})
    guest.sh("head -c 5M /dev/zero > /workspace/big")
    assert (guest.folder / "workspace" / "big").stat().st_size == MIB
    driver.ask("close", id=guest.sandbox_id)


def test_what_is_enforced_is_what_is_reported(driver: Driver, guest: Guest) -> None:
    limits = json.loads(guest.ask({})["limits"])
    assert {"processes", "tmpBytes", "fileBytes", "openFiles"} <= set(limits["enforced"])
    assert ("memoryBytes" in limits["enforced"]) == ("memory" in driver.limits)
    assert ("cpus" in limits["enforced"]) == ("cpu" in driver.limits)
    assert set(limits["enforced"]).isdisjoint(limits["missing"])
    assert "diskBytes" in limits["missing"]


def test_no_secret_is_on_a_command_line(driver: Driver, guest: Guest) -> None:
    """Everybody on the machine may read those."""
    for pid in (guest.bwrap, guest.pid):
        assert b"enrol-secret" not in Path(f"/proc/{pid}/cmdline").read_bytes()
