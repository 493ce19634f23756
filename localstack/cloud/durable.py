"""Files that are on disk, whole, when the call returns: also after the machine has lost its power."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

logger = logging.getLogger("localstack.durable")

# Key of a saved state: the last request that it holds.
POSITION = "nodus_position"


def write_file(path: Path, content: bytes) -> None:
    """Replace the file in one step. Raises OSError, and leaves the file as it was then."""
    partial = path.with_name(f"{path.name}.tmp")
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """What names the folder holds is on disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Saves:
    """Saved states of services, in MiniStack's format, in the place of its own writing, which syncs nothing.

    Args:
        persistence: MiniStack's module of that name.
        logged: the services whose requests are logged.
        position: the last request that is in the log.
    """

    def __init__(self, persistence: Any, logged: tuple[str, ...], position: Callable[[], int]) -> None:
        self._persistence = persistence
        self._logged = logged
        self._position = position
        self.folder = Path(persistence.STATE_DIR)
        persistence.save_state = self._save_and_tell  # MiniStack saves by it on a clean stop

    def save(self, services: Mapping[str, Callable[[], Any]]) -> list[str]:
        """Save the states that these give; the names of those that could not be saved."""
        failed: list[str] = []
        for name, state_of in services.items():
            try:
                state = state_of()
                if state is not None:  # a service that could not be loaded says so by None
                    self._write(name, state)
            except Exception as error:  # noqa: BLE001 - one that cannot be saved keeps no other from it
                logger.error("the state of %s could not be saved: %s", name, error)
                failed.append(name)
        return failed

    def _save_and_tell(self, name: str, state: Any) -> None:
        self.save({name: lambda: state})

    def _write(self, name: str, state: dict[str, Any]) -> None:
        # The position is written last, so that it is found without reading a large state.
        payload = {**state, POSITION: self._position()} if name in self._logged else state
        wrapped = {
            "__ministack_format__": self._persistence._state_format_version(name),
            "payload": payload,
        }
        text = json.dumps(wrapped, default=self._persistence._json_default)
        self.folder.mkdir(parents=True, exist_ok=True)
        write_file(self.folder / f"{name}.json", text.encode())
