"""Archives for tests, sound and hostile, and the daemon's workers run on them as the daemon runs them."""

import gzip
import io
import json
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sandboxd.archive import MODULES
from sandboxd.workers import worker

LIMITS = {"maxBytes": 1 << 30, "maxEntries": 10_000, "maxDepth": 64, "outerLinks": True, "strip": 0}
PACK_LIMITS = {**LIMITS, "maxArchiveBytes": 1 << 30}


def work(
    name: str,
    archive: Path,
    request: dict[str, Any],
    *,
    writes: bool,
    python: str = sys.executable,
    **as_user: int,
) -> dict[str, Any]:
    """The answer of a worker to which the archive is given as an open file."""
    with archive.open("w+b" if writes else "rb") as file:
        done = subprocess.run(
            [*worker(python, "archive", *MODULES[name]), json.dumps(request)],
            stdin=file,
            capture_output=True,
            check=False,
            **as_user,
        )
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def unpack(archive: Path, folder: Path, **limits: Any) -> dict[str, Any]:
    return work("unpacking", archive, {**LIMITS, "dir": str(folder), **limits}, writes=False)


def unpack_as(archive: Path, folder: Path, **as_user: int) -> dict[str, Any]:
    """The same as another user, by an interpreter that everybody can execute."""
    request = {**LIMITS, "dir": str(folder)}
    python = "/usr/bin/python3" if as_user else sys.executable
    return work("unpacking", archive, request, writes=False, python=python, **as_user)


def pack(folder: Path, archive: Path, **limits: Any) -> dict[str, Any]:
    return work("packing", archive, {**PACK_LIMITS, "dir": str(folder), **limits}, writes=True)


def made(path: Path, *fill: Callable[[tarfile.TarFile], None], form: int = tarfile.PAX_FORMAT) -> Path:
    """An archive that is filled step by step."""
    with tarfile.open(path, "w:gz", format=form) as archive:
        for step in fill:
            step(archive)
    return path


def packed(path: Path, raw: bytes) -> Path:
    """An archive of exactly these bytes."""
    path.write_bytes(gzip.compress(raw))
    return path


def file(name: str, content: bytes = b"x", mode: int = 0o644) -> Callable[[tarfile.TarFile], None]:
    def step(archive: tarfile.TarFile) -> None:
        info = tarfile.TarInfo(name)
        info.size, info.mode = len(content), mode
        archive.addfile(info, io.BytesIO(content))

    return step


def entry(name: str, kind: bytes, target: str = "", **more: Any) -> Callable[[tarfile.TarFile], None]:
    """A folder, a link, or something that is no file; `more` are further fields of its header."""

    def step(archive: tarfile.TarFile) -> None:
        info = tarfile.TarInfo(name)
        info.type, info.linkname, info.mode = kind, target, 0o755
        for field, value in more.items():
            setattr(info, field, value)
        archive.addfile(info)

    return step
