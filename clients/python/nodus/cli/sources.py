"""What a file that the command line names holds, or standard input (`-`)."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from nodus.cli.failures import Failure


def content(name: str, most: int) -> bytes:
    """The first `most` bytes. Raises `Failure` where the file cannot be read."""
    try:
        if name == "-":
            return sys.stdin.buffer.read(most)
        with Path(name).open("rb") as file:
            return file.read(most)
    except OSError as error:
        raise Failure(f"{name}: {os.strerror(error.errno or 0)}", reason="FileNotRead") from error


def text(name: str, most: int) -> str:
    """All of it, exactly; no message quotes it.

    Raises:
        Failure: it cannot be read, is larger than `most` bytes, or is no UTF-8.
    """
    found = content(name, most + 1)
    if len(found) > most:
        raise Failure(f"{name}: larger than {most} bytes", reason="FileNotRead")
    try:
        return found.decode()
    except UnicodeDecodeError as error:
        # The error itself holds the text, which may be secret.
        raise Failure(f"{name}: not UTF-8 at byte {error.start}", reason="FileNotRead") from None
