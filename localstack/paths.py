"""Where the local cloud keeps what it has: one folder, `.state/` of the checkout or NODUS_STATE."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CLOUD_PYTHON = ROOT / ".state" / "venv" / "bin" / "python"
APP_BIN = ROOT / ".venv" / "bin"
# `uv`, which builds the third-party layer.
TOOLS_BIN = ROOT / ".state" / "tools" / "bin"


@dataclass(frozen=True)
class State:
    """The folder of one local cloud; two folders are two clouds side by side."""

    folder: Path

    @classmethod
    def current(cls) -> State:
        """The folder that NODUS_STATE names, else `.state` of the checkout."""
        return cls(Path(os.environ.get("NODUS_STATE") or ROOT / ".state").resolve())

    @property
    def cloud_file(self) -> Path:
        return self.folder / "cloud.json"

    @property
    def emulator(self) -> Path:
        return self.folder / "ministack"

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    @property
    def run(self) -> Path:
        """Pid files, and files by which a process says that it is ready."""
        return self.folder / "run"

    @property
    def sandboxes(self) -> Path:
        return self.folder / "sandboxes"

    @property
    def deployment(self) -> Path:
        """What was deployed last, and the files of the CDK command line."""
        return self.folder / "deploy"

    def create(self) -> None:
        """Make the folder, readable by its owner only: it holds credentials and what runs wrote."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for part in (self.emulator, self.logs, self.run, self.sandboxes, self.deployment):
            part.mkdir(exist_ok=True, mode=0o700)
