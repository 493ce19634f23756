"""Where the local cloud keeps what it has: one folder, `.state/` of the checkout or NODUS_STATE."""

from __future__ import annotations

import contextlib
import os
import shutil
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

    @property
    def scripted(self) -> Path:
        """What the scripted model server was asked, prompts included."""
        return self.folder / "scripted"

    @property
    def tls(self) -> Path:
        """Certificate and key of the API's TLS listener."""
        return self.folder / "tls"

    @property
    def tls_authority(self) -> Path:
        """The certificate by which clients know that listener."""
        return self.tls / "ca.pem"

    @property
    def repositories(self) -> Path:
        """Bare repositories that runs may take their files from; a person puts them there, as OWNER/NAME.git."""
        return self.folder / "repositories"

    @property
    def lock_file(self) -> Path:
        """Held by the command that changes the cloud (`localstack.turns`)."""
        return self.folder / "lock"

    @property
    def parts(self) -> tuple[Path, ...]:
        """The folders below it."""
        return (self.emulator, self.logs, self.run, self.sandboxes, self.deployment, self.scripted, self.tls)

    def create(self) -> None:
        """Make the folders, open to their owner only: they hold credentials and what runs wrote.

        A folder that NODUS_STATE names and that was there before keeps its mode: it may hold other things.
        """
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for part in self.parts:
            part.mkdir(exist_ok=True, mode=0o700)
            part.chmod(0o700)
        self.repositories.mkdir(exist_ok=True)

    def remove(self) -> None:
        """Remove all that the local cloud has made in it, and itself if nothing else is there.

        A person's repositories stay.
        """
        for part in (*self.parts, self.folder / "sandbox-runtime", self.folder / "home"):
            shutil.rmtree(part, ignore_errors=True)
        for file in (self.cloud_file, self.folder / "scripted.key", self.lock_file):
            file.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.repositories.rmdir()
        if not any(self.folder.iterdir()):
            self.folder.rmdir()
