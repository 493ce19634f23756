"""Start and stop a local cloud."""

from __future__ import annotations

import os
import signal
from dataclasses import replace

from localstack import daemons
from localstack.ecs_agent import readiness
from localstack.endpoints import Cloud, write_private
from localstack.paths import State
from localstack.processes import Daemon, ProcessError, environment_of, kill_marked, signal_quietly

START_S = 60.0
ANSWER_S = 120.0
SNAPSHOTS = "snapshots"
WARMINGS = "warmings"


def start(state: State) -> Cloud:
    """Start what does not run yet; a second call changes nothing.

    Raises:
        ProcessError: a process did not start.
    """
    state.create()
    cloud, running = start_emulator(state)
    pids = {daemons.CLOUD: running}
    for daemon in companions(state, cloud):
        if daemon.name == daemons.AGENT and told_otherwise(state, daemon):
            daemon.stop()
        pids[daemon.name] = daemon.pid() or begin(state, daemon)
    scripted = daemons.scripted_daemon(state)
    scripted.await_ready(lambda: daemons.scripted_port(state) is not None, START_S)
    agent = daemons.agent_daemon(state, cloud)
    agent.await_ready(lambda: readiness.told(state, agent.pid()) is not None, START_S)
    cloud = replace(cloud, pids=pids)
    if not state.cloud_file.exists() or Cloud.load(state) != cloud:
        cloud.save(state)
    return cloud


def begin(state: State, daemon: Daemon) -> int:
    """Start one that does not run; what it said of itself before it ended says nothing of it now."""
    if daemon.name == daemons.SCRIPTED:
        daemons.forget_scripted(state)
    return daemon.start()


def start_emulator(state: State) -> tuple[Cloud, int]:
    """The running emulator, started if need be, and its pid."""
    if state.cloud_file.exists():
        cloud = Cloud.load(state)
        pid = daemons.cloud_daemon(state, cloud).pid()
        if pid is not None:
            return cloud, pid
    kill_marked(state.folder)  # what a killed emulator left behind would write into the same folders
    daemons.forget(state)
    cloud = daemons.new_cloud(state)
    cloud.save(state)
    daemon = daemons.cloud_daemon(state, cloud)
    pid = daemon.start()
    daemon.await_ready(lambda: daemons.answers(cloud), START_S)
    return cloud, pid


def companions(state: State, cloud: Cloud) -> list[Daemon]:
    """The processes beside the emulator."""
    return [daemons.scripted_daemon(state), daemons.agent_daemon(state, cloud)]


def told_otherwise(state: State, agent: Daemon) -> bool:
    """Whether the running agent must be started anew: a person now tells it something else than it was started with.

    A word that is left out this time takes nothing back: `make up` again must not end running sandboxes. An agent
    that refuses has none, and may decide better now. One that has not said what it decided is of another release, or
    hangs: commands change the cloud one at a time.
    """
    pid = agent.pid()
    if pid is None:
        return False
    said = readiness.told(state, pid)
    if said is None or said.refusal is not None:
        return True
    begun_with = environment_of(pid)
    return any(
        begun_with.get(name) != os.environ[name] for name in daemons.AGENT_WORDS if os.environ.get(name)
    )


def refusal(state: State) -> str | None:
    """Why the running agent starts no sandboxes, and what to do; None: it does, or does not run."""
    said = readiness.told(state, daemons.agent_daemon(state, Cloud.load(state)).pid())
    return said.refusal if said else None


def all_daemons(state: State) -> list[Daemon]:
    """Every process that may run, the emulator last: the others still talk to it while they stop."""
    cloud = Cloud.load(state)
    return [
        daemons.agent_daemon(state, cloud),
        daemons.scripted_daemon(state),
        daemons.cloud_daemon(state, cloud),
    ]


def stop(state: State) -> list[str]:
    """Stop everything, state saved; answers the names of what ran. Nothing is left behind."""
    stopped: list[str] = []
    if state.cloud_file.exists():
        stopped = [daemon.name for daemon in all_daemons(state) if daemon.stop()]
        cloud = Cloud.load(state)
        replace(cloud, pids={}).save(state)
    kill_marked(state.folder)
    if state.folder.exists():
        daemons.forget(state)
    return stopped


def save(state: State) -> None:
    """Have the emulator write its state to disk now.

    Raises:
        ProcessError: it does not run, or did not write it in time.
    """
    ask(state, signal.SIGUSR1, SNAPSHOTS)


def warm(state: State) -> None:
    """Have the emulator start a worker of every function that has none.

    Raises:
        ProcessError: it does not run, or did not finish in time.
    """
    ask(state, signal.SIGUSR2, WARMINGS)


def ask(state: State, number: int, counter: str) -> None:
    """Send a signal to the emulator and wait until it has counted the work as done."""
    daemon = daemons.cloud_daemon(state, Cloud.load(state))
    pid = daemon.pid()
    if pid is None:
        raise ProcessError("the local cloud does not run: `make up`")
    before = counted(state, counter)
    signal_quietly(os.kill, pid, number)
    daemon.await_ready(lambda: counted(state, counter) != before, ANSWER_S)


def count(state: State, counter: str) -> None:
    """Count one piece of work as done; called by the emulator."""
    write_private(state.run / counter, str(counted(state, counter) + 1))


def counted(state: State, counter: str) -> int:
    """How often the emulator did this work since the state folder was made."""
    try:
        return int((state.run / counter).read_text())
    except (FileNotFoundError, ValueError):
        return 0
