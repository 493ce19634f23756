"""Effects of commands, counted outside of all that is tested.

Each sandbox's working folder gets a second name of a file that stands outside of the cloud. A command appends its
token to it: what it wrote is there whatever becomes of the sandbox, its daemon, its agent or the cloud.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from localstack.paths import State

NAME = "effects"
LOOK_S = 0.05
WAIT_STEPS = 6000
"""Tenths of a second that a command waits for the file: longer than it ever takes, so that nothing stays for ever."""


class Outside:
    """What has happened: for each sandbox, its tokens in the order in which they were written."""

    def __init__(self, files: Sequence[Sequence[str]]) -> None:
        self._counts = Counter(token for file in files for token in file)
        self._by_mark: dict[str, list[Sequence[str]]] = {}
        for file in files:
            if file:
                self._by_mark.setdefault(mark_of(file[0]), []).append(file)

    def count(self, token: str) -> int:
        """How often this token was written."""
        return self._counts[token]

    def of(self, mark: str) -> Sequence[Sequence[str]]:
        """What was written in each sandbox of the run with this mark."""
        return self._by_mark.get(mark, [])


def mark_of(token: str) -> str:
    """The mark of the run whose effect a token stands for: what is in front of its first dot."""
    return token.partition(".")[0]


def effect(token: str, seconds: float) -> str:
    """A command that has the effect once each time it runs, takes a while, and prints its token."""
    wait = f"i=0; until [ -e {NAME} ] || [ $i -gt {WAIT_STEPS} ]; do sleep 0.1; i=$((i+1)); done"
    return f"{wait}; echo {token} >> {NAME}; sleep {seconds:.1f}; echo {token}"


class Effects:
    """Gives every sandbox of a cloud its file; use it as a context manager.

    Args:
        state: the cloud's folder.
        folder: where the files stand, on the same file system.
    """

    def __init__(self, state: State, folder: Path) -> None:
        self._sandboxes = state.sandboxes
        self._folder = folder
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, name="effects")

    def __enter__(self) -> Effects:
        self._folder.mkdir()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def outside(self) -> Outside:
        """What has happened until now."""
        return Outside([file.read_text().split() for file in self._folder.iterdir()])

    def _work(self) -> None:
        while not self._over.wait(LOOK_S):
            for workspace in self._sandboxes.glob("*/workspace"):
                self._give(workspace)

    def _give(self, workspace: Path) -> None:
        file = self._folder / workspace.parent.name
        try:
            if not (workspace / NAME).exists():
                file.touch()
                os.chmod(file, 0o666)  # commands run as a user of their own
                os.link(file, workspace / NAME)
        except (FileNotFoundError, FileExistsError):
            return  # the sandbox is gone
