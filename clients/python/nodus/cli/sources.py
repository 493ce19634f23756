"""What a file that the command line names holds, or standard input (`-`), or what stands at an address."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from urllib.parse import urljoin

from nodus._wire import BlockingWire, Request
from nodus.cli.failures import Failure

FETCH_SECONDS = 30.0
MOST_REDIRECTS = 5


def content(name: str, most: int) -> bytes:
    """The first `most` bytes. Raises `Failure` where the file cannot be read."""
    try:
        if name == "-":
            return sys.stdin.buffer.read(most)
        with Path(name).open("rb") as file:
            return file.read(most)
    except OSError as error:
        raise Failure(f"{name}: {os.strerror(error.errno or 0)}", reason="FileNotRead") from error


def is_address(name: str) -> bool:
    """Whether it names no file but what stands somewhere in the web."""
    return name.startswith(("https://", "http://"))


def fetched(address: str, most: int) -> bytes:
    """What stands at an address; no key is sent along.

    Raises:
        Failure: it is not there, or leads elsewhere too often.
        NodusError: it cannot be reached, or is larger than `most` bytes.
    """
    wire = BlockingWire()
    here = address
    try:
        for _ in range(MOST_REDIRECTS):
            found = wire.exchange(Request("GET", here, {"Accept": "*/*"}, None, FETCH_SECONDS, most))
            if found.code < 300:
                return found.content
            if found.code >= 400:
                raise Failure(f"{address}: HTTP {found.code}", reason="FileNotRead")
            onward = urljoin(here, found.headers.get("location", ""))
            if here.startswith("https://") and not onward.startswith("https://"):
                raise Failure(f"{address}: leads out of TLS", reason="FileNotRead")
            here = onward
    finally:
        wire.close()
    raise Failure(f"{address}: leads elsewhere too often", reason="FileNotRead")


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
