"""The script folders: read at start, and again whenever a file in them has changed."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from localstack.scripted.heard import Heard
from localstack.scripted.script import BadScript, Script, read_scripts


class Library:
    """Scripts in the order in which they are asked: folder by folder, file names sorted, top to bottom.

    A file that cannot be read is left out and named in `problems`; the others are played.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = tuple(folders)
        self.scripts: tuple[Script, ...] = ()
        self.problems: tuple[str, ...] = ()
        self._seen: dict[Path, tuple[int, int]] | None = None

    def find(self, heard: Heard) -> tuple[Script, Mapping[int | str, str]] | None:
        """The first script that is meant by the request, with the groups that its match found."""
        self.refresh()
        for script in self.scripts:
            groups = script.match.groups(heard)
            if groups is not None and (script.replies or heard.families is not None):
                return script, groups
        return None

    def refresh(self) -> None:
        """Reads the folders again if a file came, went or changed."""
        seen = {path: _stamp(path) for folder in self.folders for path in _files(folder)}
        if seen == self._seen:
            return
        scripts: list[Script] = []
        problems: list[str] = []
        for path in seen:
            try:
                scripts += read_scripts(path.read_text(encoding="utf-8"), path.name)
            except (BadScript, OSError, UnicodeDecodeError) as error:
                problems.append(str(error))
                print(f"scripted: {path} is left out: {error}", file=sys.stderr, flush=True)
        self.scripts, self.problems, self._seen = tuple(scripts), tuple(problems), seen


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.suffix in (".yaml", ".yml"))


def _stamp(path: Path) -> tuple[int, int]:
    try:
        stat = path.stat()
    except FileNotFoundError:  # deleted between the listing and now; the next look sees it gone
        return (0, 0)
    return stat.st_mtime_ns, stat.st_size
