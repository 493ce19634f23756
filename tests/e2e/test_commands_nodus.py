"""The command lines of commands_nodus.txt, one after the other, on a deployed cloud."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.e2e.conftest import PROGRAM, Place
from tests.unit.client.manifests import NEX_04, NEX_07

LINES = Path(__file__).with_name("commands_nodus.txt")
NEX_50 = Path(__file__).parents[2] / "examples" / "agents" / "product-showcase" / "budget.yaml"
RUNS = """\
apiVersion: nodus.dev/v1
kind: AgentRunList
items:
- apiVersion: nodus.dev/v1
  kind: AgentRun
  metadata: {name: both-1}
  spec: {agent: hello-agent, input: Use the shell to print the Python version}
- apiVersion: nodus.dev/v1
  kind: AgentRun
  metadata: {name: both-2}
  spec: {agent: hello-agent, input: Use the shell to print the Python version}
"""
FILES = {"agent.yaml": NEX_04, "run.yaml": NEX_07, "runs.yaml": RUNS, "budget.yaml": NEX_50.read_text()}
PROJECT = "commands"


@dataclass
class Line:
    """A command line and what is expected of it."""

    number: int
    words: str
    code: int = 0
    has: list[str] = field(default_factory=list)
    has_not: list[str] = field(default_factory=list)


def read(text: str) -> Iterator[Line]:
    """The command lines of a file."""
    line: Line | None = None
    for number, row in enumerate(text.splitlines(), 1):
        mark, _, rest = row.partition(" ")
        if mark == "$":
            if line is not None:
                yield line
            line = Line(number, rest)
        elif mark in {"=", ">", "!"}:
            assert line is not None, f"line {number}: no command line before it"
            if mark == "=":
                line.code = int(rest)
            else:
                (line.has if mark == ">" else line.has_not).append(rest)
        else:
            assert not row or row.startswith("#"), f"line {number}: {row!r}"
    if line is not None:
        yield line


def failure(line: Line, done: subprocess.CompletedProcess[str]) -> str | None:
    """What is not as expected."""
    output = done.stdout + done.stderr
    wrong = [f"exit code {done.returncode}, not {line.code}"] if done.returncode != line.code else []
    wrong += [f"no {pattern}" for pattern in line.has if not re.search(pattern, output, re.MULTILINE)]
    wrong += [f"has {pattern}" for pattern in line.has_not if re.search(pattern, output, re.MULTILINE)]
    if not wrong:
        return None
    return f"{LINES.name}:{line.number}: {line.words}\n  {'; '.join(wrong)}\n{output}"


@pytest.mark.integration
@pytest.mark.timeout(600, func_only=True)
@pytest.mark.req(
    *("NOD-481", "NOD-482", "NOD-483", "NOD-484", "NOD-486", "NOD-487", "NOD-488", "NOD-490", "NOD-491"),
    *("NOD-492", "NOD-495", "NOD-496", "NOD-497", "NOD-498", "NOD-499", "NOD-500"),
)
def test_every_command_line_does_what_it_says(terminal: Place) -> None:
    for name, text in FILES.items():
        (terminal.folder / name).write_text(text)
    environment = terminal.environment | {"NODUS_PROJECT": PROJECT}
    environment["PATH"] = f"{PROGRAM.parent}:{environment['PATH']}"
    failures: list[str] = []
    lines = list(read(LINES.read_text()))
    assert len(lines) >= 60
    for line in lines:
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", line.words],
            env=environment,
            cwd=terminal.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        wrong = failure(line, done)
        if wrong is not None:
            failures.append(wrong)
    assert not failures, "\n".join(failures)
