"""One command at a time changes a local cloud: two `make up` at once would start it twice."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from localstack.paths import State


@contextmanager
def turn(state: State) -> Iterator[None]:
    """Wait until no other command changes this cloud, and hold it while the block runs.

    The kernel gives the turn back when the process ends, however it ends.
    """
    file = _held(state)
    try:
        yield
    finally:
        file.close()


def _held(state: State) -> TextIO:
    while True:
        state.create()
        file = state.lock_file.open("w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"another command is changing the cloud in {state.folder}; waiting for it", file=sys.stderr)
            fcntl.flock(file, fcntl.LOCK_EX)
        if _is_current(state, file):
            return file
        file.close()  # `clean` has removed the file that we waited for: whoever comes now locks another


def _is_current(state: State, file: TextIO) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), state.lock_file.stat())
    except FileNotFoundError:
        return False
