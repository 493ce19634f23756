"""`make up` and the sandboxes' agent that runs already: a new word starts it anew, a repeated `up` does not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from localstack import daemons, supervise
from localstack.ecs_agent import readiness
from localstack.paths import ROOT, State
from localstack.processes import Daemon

# As a command does that starts a cloud: it ends, its processes do not.
pytestmark = pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> State:
    for name in daemons.AGENT_WORDS:
        monkeypatch.delenv(name, raising=False)
    made = State(tmp_path / "state")
    made.create()
    return made


@pytest.fixture
def running(state: State) -> Iterator[Callable[..., Daemon]]:
    """Starts what stands for the agent, with these words, and has it say that it is ready."""
    started: list[Daemon] = []

    def start(**words: str) -> Daemon:
        log = state.logs / "ecs-agent.log"
        daemon = Daemon(daemons.AGENT, ["/bin/sleep", "60"], words, state.run, log, ROOT)
        pid = daemon.start()
        started.append(daemon)
        readiness.ready_file(state).write_text(json.dumps({"pid": pid, "refusal": None}))
        return daemon

    yield start
    for daemon in started:
        daemon.stop()


def test_a_word_that_differs_starts_it_anew_and_one_left_out_does_not(
    state: State, running: Callable[..., Daemon], monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = running(NODUS_SANDBOX_UNISOLATED="i-understand", NODUS_MAX_SANDBOXES="4")
    assert not supervise.told_otherwise(state, agent)
    monkeypatch.setenv("NODUS_SANDBOX_UNISOLATED", "i-understand")
    assert not supervise.told_otherwise(state, agent)
    monkeypatch.setenv("NODUS_MAX_SANDBOXES", "8")
    assert supervise.told_otherwise(state, agent)


def test_the_opt_in_reaches_an_agent_that_refuses(
    state: State, running: Callable[..., Daemon], monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = running()
    assert not supervise.told_otherwise(state, agent)
    monkeypatch.setenv("NODUS_SANDBOX_UNISOLATED", "i-understand")
    assert supervise.told_otherwise(state, agent)


def test_an_agent_that_refuses_may_decide_better_now(state: State, running: Callable[..., Daemon]) -> None:
    agent = running()
    said = {"pid": agent.pid(), "refusal": "no namespaces"}
    readiness.ready_file(state).write_text(json.dumps(said))
    assert supervise.told_otherwise(state, agent)


def test_an_agent_that_never_said_what_it_decided_is_started_anew(
    state: State, running: Callable[..., Daemon]
) -> None:
    agent = running()
    readiness.ready_file(state).unlink()
    assert supervise.told_otherwise(state, agent)
    agent.stop()
    assert not supervise.told_otherwise(state, agent)  # nothing runs that could be
