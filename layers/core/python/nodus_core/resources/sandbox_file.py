"""Files of a Sandbox, as calls name them (NODQ-67)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from nodus_core.kernel.errors import Refusal
from nodus_core.resources.fields import Spec, Str
from nodus_core.resources.manifest import read_body

LONGEST_PATH = 4096
"""Bytes of a path: what Linux takes."""

MOST_FILE_BYTES = 512 * 1024 * 1024
"""Of one file that is uploaded or downloaded."""

_MODE = re.compile(r"0?[0-7]{3}")
_VERSION = re.compile(r'(?:W/)?"([\x21\x23-\x7e]{1,100})"')
_MOST_VERSIONS = 20


def _any_path(path: str) -> str:
    if not path or "\0" in path:
        raise ValueError("must be a path in the sandbox: not empty, and without NUL")
    if len(path.encode(errors="replace")) > LONGEST_PATH:
        raise ValueError(f"has more than {LONGEST_PATH} bytes")
    return path


Path = Annotated[Str, AfterValidator(_any_path), Field(min_length=1, max_length=LONGEST_PATH)]
"""Any path that Linux takes: what stands there, and what may be done with it, only the sandbox knows."""


@dataclass(frozen=True)
class Versions:
    """Of which version of a file something is asked: one of `match`; with `none`, there must be no file."""

    match: tuple[str, ...] = ()
    none: bool = False

    @classmethod
    def read(cls, headers: Mapping[str, str]) -> "Versions":
        """From `If-Match` and `If-None-Match: *`. Raises `Refusal` `BadRequest`."""
        none = headers.get("if-none-match")
        if none not in (None, "*"):
            raise Refusal("BadRequest", "If-None-Match of a change must be *: there must be no such file")
        return cls(entity_tags(headers.get("if-match")), none is not None)

    def wire(self) -> dict[str, Any]:
        """As the daemon takes it."""
        return {
            **({"ifMatch": list(self.match)} if self.match else {}),
            **({"ifNoneMatch": ["*"]} if self.none else {}),
        }


def entity_tags(header: str | None) -> tuple[str, ...]:
    """The versions that `If-Match` or `If-None-Match` names; `*` stands for any. Raises `Refusal` `BadRequest`."""
    if header is None:
        return ()
    if header.strip() == "*":
        return ("*",)
    parts = [part.strip() for part in header.split(",")]
    found = tuple(match.group(1) for part in parts if (match := _VERSION.fullmatch(part)))
    if len(found) != len(parts) or len(parts) > _MOST_VERSIONS:
        raise Refusal("BadRequest", 'If-Match and If-None-Match name versions such as "1f-2a", or *')
    return found


@dataclass(frozen=True)
class Save:
    """How a file is saved. `mode`: octal digits, None for the file's own; `parents`: folders above it are made."""

    path: str
    versions: Versions
    mode: str | None = None
    parents: bool = False

    def wire(self) -> dict[str, Any]:
        """As the daemon takes it."""
        mode = {} if self.mode is None else {"mode": self.mode}
        return {"path": self.path, "createDirs": self.parents, **mode, **self.versions.wire()}


def read_mode(text: str | None) -> str | None:
    """Permission bits in octal digits. Raises `Refusal` `BadRequest`."""
    if text is not None and not _MODE.fullmatch(text):
        raise Refusal("BadRequest", "mode must be permission bits such as 0644")
    return text


class FileUpload(Spec):
    """The body of `POST …/sandboxes/NAME/files/uploads`: a content that will be uploaded."""

    size: int = Field(ge=0, le=MOST_FILE_BYTES, description="Its bytes; at most 512 MiB.")
    sha256: Annotated[Str, Field(pattern="^[0-9a-f]{64}$")] = Field(
        description="Its sha256, in hexadecimal: another content is not taken."
    )


class FileMove(Spec):
    """The body of `POST …/sandboxes/NAME/files/moves`."""

    path: Path = Field(description="What is moved: a file, a link or a folder.")
    to: Path = Field(description="Its new path.")
    overwrite: bool = Field(default=False, description="A file that has this path is replaced.")
    parents: bool = Field(default=False, description="Folders above the new path are made.")


class NewFolder(Spec):
    """The body of `POST …/sandboxes/NAME/files/folders`."""

    path: Path = Field(description="The folder; those above it are made, too.")


def read_path(query: Mapping[str, str]) -> str:
    """The path that a query names; a relative one counts from the working folder. Raises `Refusal` `BadRequest`."""
    try:
        return _any_path(query.get("path", ""))
    except ValueError as error:
        raise Refusal("BadRequest", f"path {error}") from None


def read_upload(body: Mapping[str, Any]) -> FileUpload:
    """The upload in a request body. Raises `Refusal` naming every field that is not right."""
    return read_body(FileUpload, "SandboxFileUpload", body)


def read_move(body: Mapping[str, Any]) -> FileMove:
    """Likewise, a move."""
    return read_body(FileMove, "SandboxFileMove", body)


def read_folder(body: Mapping[str, Any]) -> NewFolder:
    """Likewise, a new folder."""
    return read_body(NewFolder, "SandboxFolder", body)
