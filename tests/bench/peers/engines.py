"""The other engines: their programs, run and killed from outside."""

from __future__ import annotations

import json
import random
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from localstack.bootstrap import STATE, Part, SetupError, child_environment, ensure, sync
from tests.bench.cloud import BenchError
from tests.bench.figures import Spread
from tests.bench.peers.figures import WIDE, Compared, Kill

HERE = Path(__file__).parent
ENVIRONMENT = STATE / "peers"
PATIENCE_S = 120.0
STEPS = 200
KILLED_STEPS = 100


@dataclass(frozen=True)
class Engine:
    """An engine and its program below `programs/`."""

    name: str
    program: str


ENGINES = (
    Engine("LangGraph 1.2.24, SqliteSaver", "langgraph_steps.py"),
    Engine("DBOS 3.4.0, SQLite", "dbos_steps.py"),
)


def install() -> None:
    """The engines' environment, unless it is current. Raises BenchError."""
    inputs = (HERE / "pyproject.toml", HERE / "uv.lock")
    product = ENVIRONMENT / "bin" / "dbos"
    try:
        ensure(
            Part("peers", inputs, product, lambda environment: sync(HERE, ENVIRONMENT, environment)),
            child_environment(),
        )
    except SetupError as error:
        raise BenchError(f"the engines to compare with cannot be installed: {error}") from error


def compared(engine: Engine, repeat: int, kills: int, chance: random.Random) -> Compared:
    """All figures of an engine. Raises BenchError when its program fails."""
    alone = [_told(engine, "steps", STEPS) for _ in range(repeat)]
    wide = [_told(engine, "wide", WIDE.runs, WIDE.steps) for _ in range(repeat)]
    return Compared(
        name=engine.name,
        step_ms=Spread.of([told["seconds"] * 1000 / STEPS for told in alone]),
        step_kib=Spread.of([told["bytes"] / 1024 / STEPS for told in alone]),
        wide_rate=Spread.of([WIDE.runs * WIDE.steps / told["seconds"] for told in wide]),
        kills=[_kill(engine, chance) for _ in range(kills)],
    )


def _told(engine: Engine, *words: str | int) -> dict[str, float]:
    with _folder() as folder:
        program = _start(engine, folder, *words)
        output, _ = program.communicate(timeout=PATIENCE_S)
        if program.returncode != 0:
            raise BenchError(f"{engine.name}: {engine.program} {words} failed; its message stands above")
        return json.loads(output.splitlines()[-1])


def _kill(engine: Engine, chance: random.Random) -> Kill:
    """Kills a run within its steps, takes it up again, and counts what ran twice."""
    with _folder() as folder:
        effects = folder / "effects"
        program = _start(engine, folder, "work", KILLED_STEPS)
        _wait(program, effects, chance.randint(KILLED_STEPS // 5, KILLED_STEPS * 4 // 5))
        program.kill()
        killed = time.monotonic()
        program.communicate()
        before = len(_lines(effects))
        program = _start(engine, folder, "work", KILLED_STEPS)
        _wait(program, effects, before + 1)
        resumed = time.monotonic() - killed
        program.communicate(timeout=PATIENCE_S)
        lines = _lines(effects)
        if len(set(lines)) != KILLED_STEPS:
            raise BenchError(
                f"{engine.name}: after a kill only {len(set(lines))} of {KILLED_STEPS} steps ran"
            )
        return Kill(repeated=len(lines) - len(set(lines)), resumed_s=resumed)


def _start(engine: Engine, folder: Path, *words: str | int) -> subprocess.Popen[str]:
    command = [ENVIRONMENT / "bin" / "python", HERE / "programs" / engine.program, folder, *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=child_environment())


def _wait(program: subprocess.Popen[str], effects: Path, lines: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while len(_lines(effects)) < lines:
        if program.poll() is not None or time.monotonic() > deadline:
            raise BenchError(f"{program.args!r} has not done {lines} steps")
        time.sleep(0.001)


def _lines(effects: Path) -> list[bytes]:
    return effects.read_bytes().splitlines() if effects.exists() else []


@contextmanager
def _folder() -> Iterator[Path]:
    # Below the checkout's state: a temporary folder may be memory, where a sync costs nothing.
    with tempfile.TemporaryDirectory(dir=STATE, prefix="peers-") as name:
        yield Path(name)
