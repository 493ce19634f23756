"""Unpacked code and layers of functions, once for each content.

MiniStack unpacks every layer again for every worker process: with a layer of 100 MB and thirty workers, that
is 3 GB and every worker compiles every module anew. Here a zip is unpacked to a folder named by its digest.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import tempfile
import threading
import zipfile
from pathlib import Path


class PackageStore:
    """Folders of unpacked zips below `folder`; safe for threads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()

    def unpack(self, content: bytes) -> Path:
        """The folder that holds the files of the zip `content`."""
        target = self._folder / hashlib.sha256(content).hexdigest()[:32]
        with self._lock:
            if not target.is_dir():
                self._folder.mkdir(parents=True, exist_ok=True)
                partial = Path(tempfile.mkdtemp(dir=self._folder, prefix="partial-"))
                extract(content, partial)
                partial.replace(target)
            os.utime(target)  # in use: not among the old ones that the next start removes
        return target

    def keep_newest(self, count: int) -> None:
        """Remove all but the `count` folders used last: each deploy leaves old ones behind."""
        if not self._folder.is_dir():
            return
        folders = sorted(self._folder.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
        for old in folders[count:]:
            shutil.rmtree(old, ignore_errors=True)


def extract(content: bytes, target: Path) -> None:
    """Unpack with the file modes of the archive; `zipfile` itself keeps members inside `target`."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for member in archive.infolist():
            path = archive.extract(member, target)
            mode = member.external_attr >> 16
            if mode and not member.is_dir():
                os.chmod(path, (mode & 0o755) | 0o600)
