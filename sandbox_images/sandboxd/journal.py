"""The command journal on disk: at most one launch for each command id, whatever crashes.

Two files for each command, named after the hash of its id: `*.start`, made with O_EXCL and synced before
anything is forked, and `*.end`, renamed into place before the outcome is told to anybody. A start without an
end, found when the daemon starts, means that nobody knows what happened: such a command is `lost` and is
never run again (NOD-443).
"""

import contextlib
import fcntl
import hashlib
import json
import logging
import os
import secrets
import stat
from collections import OrderedDict
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from sandboxd.results import Result, lost_result

logger = logging.getLogger(__name__)

KEEP_ENDED = 200
KEEP_BYTES = 32 * 1024 * 1024
"""Told outcomes are kept up to this size together: 200 pages of files could be 200 MB."""

_SCHEMA_VERSION = 1


class EntryState(StrEnum):
    """What the journal knows of a command."""

    BEGUN = "begun"
    ENDED = "ended"
    EVICTED = "evicted"  # ended and told long ago: the outcome is gone, the id stays taken


@dataclass(frozen=True)
class Entry:
    """One command in the journal."""

    digest: str
    state: EntryState


class JournalError(Exception):
    """The record cannot be written; of a start record: the command was certainly not started."""


class AlreadyBegunError(Exception):
    """There is a start record for this id already; the command must not be started."""


class CommandJournal:
    """Records of one daemon; a lock keeps a second daemon out of the folder.

    Args:
        folder: made when it is not there, with mode 0700.
        keep_ended: how many told outcomes are kept.
    """

    def __init__(self, folder: Path, keep_ended: int = KEEP_ENDED) -> None:
        self._folder = folder / "commands"
        self._evicted_path = folder / "evicted"
        self._keep_ended = keep_ended
        self._entries: dict[str, Entry] = {}
        self._told: OrderedDict[str, int] = OrderedDict()  # sizes in bytes, the oldest first
        self._lock_fd: int | None = None

    def open(self) -> None:
        """Takes the folder, reads all records, and settles as `lost` what an earlier daemon left open.

        Raises:
            JournalError: the folder cannot be used, or another daemon has it.
        """
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._check_owner()
            os.chmod(self._folder.parent, 0o700)
            self._take_lock()
            self._read_evicted()
            self._read_records()
        except OSError as error:
            raise JournalError(f"The state folder {self._folder.parent} cannot be used: {error}.") from error

    @property
    def folder(self) -> Path:
        """The daemon's own folder, in which nobody else can look where the users differ."""
        return self._folder.parent

    def close(self) -> None:
        """Gives the folder back."""
        if self._lock_fd is not None:
            os.close(self._lock_fd)
            self._lock_fd = None

    def find(self, command_id: str) -> Entry | None:
        """What is known of an id; None: it was never begun."""
        return self._entries.get(key_of(command_id))

    def outcome(self, command_id: str) -> Result | None:
        """The recorded outcome of an ended command; None when it was evicted or its record cannot be read."""
        try:
            record = json.loads((self._folder / f"{key_of(command_id)}.end").read_bytes())
        except (OSError, ValueError):
            return None
        return record["result"]

    def begin(self, command_id: str, digest: str, kind: str, boot: str) -> None:
        """Writes the start record and syncs it; only then may the command be started.

        Raises:
            AlreadyBegunError: the id is taken.
            JournalError: the record could not be written; nothing may be started.
        """
        key = key_of(command_id)
        record = {"v": _SCHEMA_VERSION, "id": command_id, "digest": digest, "kind": kind, "boot": boot}
        path = self._folder / f"{key}.start"
        try:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except FileExistsError as error:
            raise AlreadyBegunError(f"Command {command_id!r} was begun before.") from error
        except OSError as error:
            raise JournalError(f"No start record can be made: {error.strerror}.") from error
        try:
            _write_synced(fd, json.dumps(record).encode())
            self._sync_folder()
        except OSError as error:
            with contextlib.suppress(OSError):  # a half record left behind reads as `lost`, the safe side
                path.unlink()
            raise JournalError(f"No start record can be written: {error.strerror}.") from error
        self._entries[key] = Entry(digest, EntryState.BEGUN)

    def end(self, command_id: str, result: Result) -> None:
        """Writes the outcome and syncs it.

        Raises:
            JournalError: it could not be written; after a crash the command will read as `lost`.
        """
        key = key_of(command_id)
        digest = self._entries[key].digest
        try:
            self._write_end(key, command_id, digest, result)
        except OSError as error:
            raise JournalError(
                f"The outcome of {command_id!r} cannot be written: {error.strerror}."
            ) from error
        self._entries[key] = Entry(digest, EntryState.ENDED)

    def told(self, command_id: str) -> None:
        """Notes that the control plane has the outcome: from now on it may be evicted."""
        key = key_of(command_id)
        if key not in self._entries or self._entries[key].state is not EntryState.ENDED:
            return
        try:
            self._told[key] = (self._folder / f"{key}.end").stat().st_size
            self._told.move_to_end(key)
            while len(self._told) > self._keep_ended or sum(self._told.values()) > KEEP_BYTES:
                oldest = next(iter(self._told))
                self._evict(oldest)
                del self._told[oldest]
        except OSError as error:
            # Nothing is forgotten that should be known; the next outcome tries again.
            logger.warning("old outcomes cannot be evicted: %s", error)

    def _evict(self, key: str) -> None:
        """Drops an outcome; id and digest stay, in one line of one file."""
        digest = self._entries[key].digest
        with open(self._evicted_path, "a", encoding="utf-8") as file:
            file.write(json.dumps([key, digest]) + "\n")
            file.flush()
            os.fdatasync(file.fileno())
        self._entries[key] = Entry(digest, EntryState.EVICTED)
        (self._folder / f"{key}.end").unlink(missing_ok=True)
        (self._folder / f"{key}.start").unlink(missing_ok=True)

    def _write_end(self, key: str, command_id: str, digest: str, result: Result) -> None:
        record = {"v": _SCHEMA_VERSION, "id": command_id, "digest": digest, "result": result}
        part = self._folder / f"{key}.{secrets.token_hex(4)}.part"
        fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            _write_synced(fd, json.dumps(record).encode())
            os.rename(part, self._folder / f"{key}.end")
        except OSError:
            part.unlink(missing_ok=True)
            raise
        self._sync_folder()

    def _check_owner(self) -> None:
        """Somebody else's folder would let them write outcomes; a default place may be anybody's to make."""
        info = os.lstat(self._folder.parent)
        if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid():
            raise JournalError(
                f"The state folder {self._folder.parent} is not a folder of the daemon's user."
            )

    def _take_lock(self) -> None:
        self._lock_fd = os.open(self._folder.parent / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise JournalError(f"Another daemon uses the state folder {self._folder.parent}.") from error

    def _read_evicted(self) -> None:
        with contextlib.suppress(FileNotFoundError), open(self._evicted_path, encoding="utf-8") as file:
            for line in file:
                with contextlib.suppress(ValueError):  # the last line may be cut by a crash
                    key, digest = json.loads(line)
                    self._entries[key] = Entry(digest, EntryState.EVICTED)

    def _read_records(self) -> None:
        ended: list[tuple[float, str, int]] = []
        for path in sorted(self._folder.iterdir()):
            key, suffix = path.name.split(".", 1)
            if suffix.endswith("part"):
                path.unlink()
                continue
            end = self._folder / f"{key}.end"
            if suffix == "start" and not end.exists():
                self._settle_as_lost(key, _read_record(path))
            elif suffix == "end":
                digest = _read_record(path).get("digest") or _read_record(path.with_suffix(".start")).get(
                    "digest"
                )
                self._entries[key] = Entry(str(digest or ""), EntryState.ENDED)
            else:
                continue
            info = end.stat()
            ended.append((info.st_mtime, key, info.st_size))
        # Outcomes of an earlier daemon are told or settled by the control plane itself (`hello`).
        self._told.update((key, size) for _, key, size in sorted(ended))

    def _settle_as_lost(self, key: str, record: dict[str, Any]) -> None:
        digest = str(record.get("digest", ""))
        result = lost_result(
            "daemon_restarted",
            "The daemon ended while the command ran. Its outcome is unknown: look before you repeat it.",
        )
        self._write_end(key, str(record.get("id", "")), digest, result)
        self._entries[key] = Entry(digest, EntryState.ENDED)

    def _sync_folder(self) -> None:
        fd = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def key_of(command_id: str) -> str:
    """A file name for any id, also one with slashes or of any length."""
    return hashlib.sha256(command_id.encode()).hexdigest()[:40]


def _read_record(path: Path) -> dict[str, Any]:
    """A record; an empty one when there is none, or a crash left only part of it."""
    try:
        record = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def _write_synced(fd: int, data: bytes) -> None:
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
        os.fdatasync(fd)
    finally:
        os.close(fd)
