"""Commands as they come from the control plane, checked field by field: what models write is hostile."""

import math
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sandboxd.execcore.spec import MARK_NAME
from sandboxd.execcore.tree import MAX_GRACE_S
from sandboxd.terminals.frames import MOST_CELLS, is_size

MAX_READ_BYTES = 256 * 1024
MAX_WRITE_BYTES = 4 * 1024 * 1024
MAX_COMMAND_BYTES = 131_071
"""Longest single argument of a Linux process (MAX_ARG_STRLEN without the final NUL)."""

DEFAULT_TIMEOUT_S = 600.0
MAX_TIMEOUT_S = 7 * 24 * 3600.0
DEFAULT_GRACE_S = 2.0

_DIGEST = re.compile(r"[\x21-\x7e]{1,200}")
DEFAULT_TERM = "xterm-256color"
_COLUMNS, _ROWS = 80, 24
_TERM = re.compile(r"[A-Za-z0-9+._-]{1,64}")
_MODE = re.compile(r"(0o)?[0-7]{1,5}")


class InvalidRequestError(ValueError):
    """A command is malformed; it certainly has no effect. The message names the field."""


@dataclass(frozen=True)
class ExecRequest:
    """Run a shell command. `is_logged`: a log has its outputs apart, and the result none."""

    command: str
    cwd: str
    start_to_end_s: float
    grace_s: float
    env: Mapping[str, str]
    is_logged: bool = False


@dataclass(frozen=True)
class ReadRequest:
    """Read `limit` bytes of a file from byte `offset`."""

    path: str
    offset: int
    limit: int


@dataclass(frozen=True)
class WriteRequest:
    """Replace a file. `mode` None keeps the file's own, or 0644 for a new one."""

    path: str
    content: bytes
    mode: int | None
    create_dirs: bool


@dataclass(frozen=True)
class TerminalRequest:
    """Open a terminal. `command` None: the shell itself; `size` is columns and rows."""

    command: str | None
    cwd: str
    env: Mapping[str, str]
    size: tuple[int, int]
    term: str


@dataclass(frozen=True)
class MkdirRequest:
    """Make a folder and those above it."""

    path: str


@dataclass(frozen=True)
class SaveRequest:
    """Send the archive of a folder to a presigned address.

    Args:
        limits: `maxBytes` of its files, `maxArchiveBytes`, `maxEntries`, `maxDepth`.
    """

    path: str
    put: str
    limits: Mapping[str, int]
    start_to_end_s: float


@dataclass(frozen=True)
class RestoreRequest:
    """Fill a folder from the archive at a presigned address, which has this size and sha256.

    Args:
        limits: `maxBytes`, `maxEntries`, `maxDepth`, `outerLinks`: whether symlinks may lead out of the folder, and
            `strip`: how many folders of each name are left away.
    """

    path: str
    get: str
    size: int
    sha256: str
    limits: Mapping[str, int]
    start_to_end_s: float


Request = (
    ExecRequest | TerminalRequest | ReadRequest | WriteRequest | MkdirRequest | SaveRequest | RestoreRequest
)


@dataclass(frozen=True)
class Command:
    """A command that has an identity; its request is checked only when it is about to run."""

    id: str
    digest: str
    kind: str
    request: Mapping[str, Any]

    @classmethod
    def from_wire(cls, wire: Any) -> "Command":
        """Reads the envelope.

        Raises:
            InvalidRequestError: without a sound id and digest there is nothing to answer to.
        """
        fields = wire if isinstance(wire, dict) else {}
        command_id, digest = fields.get("id"), fields.get("digest")
        if not isinstance(command_id, str) or not 0 < len(command_id) <= 512 or not _is_unicode(command_id):
            raise InvalidRequestError("A command has no usable id (1 to 512 characters).")
        if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
            raise InvalidRequestError(f"Command {command_id!r} has no usable digest.")
        request = fields.get("request")
        return cls(command_id, digest, str(fields.get("kind")), request if isinstance(request, dict) else {})

    def parse(self, workspace: str, called: str | None = None) -> Request:
        """Checks kind and request. Relative paths are taken from `workspace`.

        Args:
            workspace: where commands start.
            called: how requests name that folder, where the launcher could not put it there; None: as it is.

        Raises:
            InvalidRequestError: something does not fit.
        """
        fields = Fields(self.request, workspace, called)
        match self.kind:
            case "exec":
                return _exec_request(fields)
            case "terminal":
                return _terminal_request(fields)
            case "read_file":
                limit = fields.whole("limit", MAX_READ_BYTES)
                return ReadRequest(fields.path("path"), fields.whole("offset", 0), min(limit, MAX_READ_BYTES))
            case "write_file":
                return _write_request(fields)
            case "mkdir":
                return MkdirRequest(fields.path("path"))
            case "save":
                return _save_request(fields)
            case "restore":
                return _restore_request(fields)
            case _:
                raise InvalidRequestError(
                    f"Kind {self.kind!r} is unknown; known are exec, terminal, read_file, write_file, mkdir, save, "
                    "restore."
                )


class Fields:
    """Reads one request; `null` counts as absent."""

    def __init__(self, fields: Mapping[str, Any], workspace: str, called: str | None) -> None:
        self._fields = fields
        self.workspace = workspace
        self._called = called

    def has(self, name: str) -> bool:
        """Whether the request says something of it."""
        return self._fields.get(name) is not None

    def text(self, name: str, default: str | None = None) -> str:
        value = self._fields.get(name)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            raise InvalidRequestError(f"{name} must be a text.")
        if not _is_unicode(value):
            raise InvalidRequestError(f"{name} holds half of a surrogate pair, which is no character.")
        return value

    def path(self, name: str, default: str | None = None) -> str:
        if self._fields.get(name) is None and default is not None:
            return default
        value = self.text(name)
        if not value or "\0" in value:
            raise InvalidRequestError(f"{name} must be a path: not empty, and without NUL.")
        if self._called is not None and f"{value}/".startswith(f"{self._called}/"):
            value = f"{self.workspace}{value.removeprefix(self._called)}"
        # Not normalized: `a/../b` means something else than `b` where `a` is a link.
        return posixpath.join(self.workspace, value)

    def whole(self, name: str, default: int) -> int:
        value = self._fields.get(name)
        if value is None:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**62:
            raise InvalidRequestError(f"{name} must be a whole number of at least 0.")
        return value

    def at_most(self, name: str) -> int:
        """A limit, which must be given."""
        if self._fields.get(name) is None:
            raise InvalidRequestError(f"{name} must be a whole number of at least 0.")
        return self.whole(name, 0)

    def address(self, name: str) -> str:
        value = self.text(name)
        if not value.startswith(("http://", "https://")):
            raise InvalidRequestError(f"{name} must be an http or https address.")
        return value

    def seconds(self, name: str, default: float, least: float, most: float) -> float:
        value = self._fields.get(name)
        if value is None:
            return default
        if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
            raise InvalidRequestError(f"{name} must be a number of seconds.")
        return float(min(max(value, least), most))

    def flag(self, name: str) -> bool:
        value = self._fields.get(name)
        if value is None:
            return False
        if not isinstance(value, bool):
            raise InvalidRequestError(f"{name} must be true or false.")
        return value

    def texts(self, name: str) -> list[str]:
        """A list of texts; absent: an empty one."""
        value = self._fields.get(name)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
            raise InvalidRequestError(f"{name} must be a list of texts.")
        return value

    def mode(self, name: str) -> int | None:
        """Permission bits: a number, or octal digits as text. Never setuid, setgid or sticky."""
        value = self._fields.get(name)
        if value is None:
            return None
        if isinstance(value, str) and _MODE.fullmatch(value):
            value = int(value, 8)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 0o7777:
            raise InvalidRequestError(f'{name} must be permission bits such as "0644".')
        return value & 0o777

    def env(self, name: str) -> dict[str, str]:
        value = self._fields.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise InvalidRequestError(f"{name} must map names to texts.")
        for key, text in value.items():
            _check_variable(name, key, text)
        return value


def _exec_request(fields: Fields) -> ExecRequest:
    return ExecRequest(
        command=_command_line(fields),
        cwd=fields.path("cwd", fields.workspace),
        start_to_end_s=fields.seconds("timeoutS", DEFAULT_TIMEOUT_S, 0.05, MAX_TIMEOUT_S),
        grace_s=fields.seconds("graceS", DEFAULT_GRACE_S, 0.0, MAX_GRACE_S),
        env=fields.env("env"),
        is_logged=fields.flag("log"),
    )


def _terminal_request(fields: Fields) -> TerminalRequest:
    size = fields.whole("cols", _COLUMNS), fields.whole("rows", _ROWS)
    if not is_size(*size):
        raise InvalidRequestError(f"cols and rows must be 1 to {MOST_CELLS}.")
    term = fields.text("term", DEFAULT_TERM)
    if not _TERM.fullmatch(term):
        raise InvalidRequestError("term must name a terminal type, such as xterm-256color.")
    command = _command_line(fields) if fields.has("command") else None
    return TerminalRequest(command, fields.path("cwd", fields.workspace), fields.env("env"), size, term)


def _command_line(fields: Fields) -> str:
    command = fields.text("command")
    if "\0" in command:
        raise InvalidRequestError("command holds a NUL character, which no command line can.")
    size = len(command.encode())
    if size > MAX_COMMAND_BYTES:
        raise InvalidRequestError(
            f"command has {size} bytes, the system takes at most {MAX_COMMAND_BYTES}. "
            "Write it to a file and run that."
        )
    return command


def _write_request(fields: Fields) -> WriteRequest:
    content = fields.text("content").encode()
    if len(content) > MAX_WRITE_BYTES:
        raise InvalidRequestError(
            f"content has {len(content)} bytes, one call writes at most {MAX_WRITE_BYTES}."
        )
    return WriteRequest(fields.path("path"), content, fields.mode("mode"), fields.flag("createDirs"))


def _save_request(fields: Fields) -> SaveRequest:
    limits = {
        name: fields.at_most(name) for name in ("maxBytes", "maxArchiveBytes", "maxEntries", "maxDepth")
    }
    return SaveRequest(fields.path("path"), fields.address("put"), limits, _archive_time(fields))


def _restore_request(fields: Fields) -> RestoreRequest:
    limits = {name: fields.at_most(name) for name in ("maxBytes", "maxEntries", "maxDepth")}
    return RestoreRequest(
        path=fields.path("path"),
        get=fields.address("get"),
        size=fields.at_most("size"),
        sha256=fields.text("sha256"),
        limits={**limits, "outerLinks": fields.flag("outerLinks"), "strip": fields.whole("strip", 0)},
        start_to_end_s=_archive_time(fields),
    )


def _archive_time(fields: Fields) -> float:
    return fields.seconds("timeoutS", DEFAULT_TIMEOUT_S, 1.0, MAX_TIMEOUT_S)


def _check_variable(field: str, key: Any, text: Any) -> None:
    if not isinstance(key, str) or not key or "=" in key or "\0" in key or not _is_unicode(key):
        raise InvalidRequestError(
            f"{field} has the name {key!r}: names are not empty and have no '=' and no NUL."
        )
    if key == MARK_NAME:
        raise InvalidRequestError(f"{field} sets {MARK_NAME}, by which the daemon knows its processes.")
    if not isinstance(text, str) or "\0" in text or not _is_unicode(text):
        raise InvalidRequestError(f"{field} gives {key!r} a value that is no text without NUL.")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
