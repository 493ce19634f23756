"""What daemons answer to asks, read strictly: everything in it is the agent's word (docs/protocols.md §2, *Asks*)."""

import base64
import binascii
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from nodus_core.kernel.errors import Reason, Refusal
from nodus_core.kernel.objects import SANDBOX

MOST_MESSAGE = 500
"""Characters of a daemon's message that are passed on."""

MOST_PAGE_BYTES = 4 * 1024 * 1024
"""Of the body of a service's answer."""

Size = Annotated[int, Field(ge=0, lt=2**62)]
Version = Annotated[str, Field(pattern=r"^[0-9a-f-]{1,60}$")]

_REASONS: dict[str, Reason] = {
    "not_found": "NotFound",
    "not_a_directory": "NotFound",
    "changed": "PreconditionFailed",
    "too_large": "PayloadTooLarge",
    "wrong_content": "BadRequest",
    "denied": "Forbidden",
    "invalid": "BadRequest",
    **dict.fromkeys(
        ("not_a_file", "exists", "not_empty", "link_loop", "other_device", "no_space"), "Conflict"
    ),
    "conflict": "IdempotencyKeyConflict",
}
"""Of answers that say that nothing was done; any other word is trouble of the sandbox that may pass."""


class Said(BaseModel):
    """What every answer is: its fields are taken as they are, and others are left alone."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


T = TypeVar("T", bound=Said)


class Entry(Said):
    """One entry of a folder; `named`: its name is text, by which it can be asked for."""

    name: str = Field(max_length=1024)
    named: bool
    type: Literal["File", "Folder", "Link", "Other"]
    size: Size
    mode: Size
    mtime_ns: int = Field(alias="mtimeNs", gt=-(2**62), lt=2**62)
    target: str | None = Field(default=None, max_length=1024)
    etag: Version | None = None


class ListedFolder(Said):
    """A page of a folder, or the one entry that a file is."""

    folder: bool
    entries: list[Entry] = Field(max_length=1000)
    next: str | None = Field(default=None, max_length=2000)


class ReadFile(Said):
    """A part of a file: `content` is base64, `more` says that the file goes on behind it."""

    size: Size
    more: bool
    etag: Version
    content: str = Field(max_length=200_000)


class WrittenFile(Said):
    """A file that was written."""

    size: Size
    etag: Version
    created: bool


class SentFile(Said):
    """A file that was sent to the store."""

    size: Size
    etag: Version
    sha256: str = Field(pattern="^[0-9a-f]{64}$")


class MovedFile(Said):
    """What was moved; folders have no version."""

    etag: Version | None = None


class Removed(Said):
    """What was removed; `left` says why something is left of a folder."""

    left: str | None = Field(default=None, max_length=10_000)


class Piece(Said):
    """A part of one stream of a command's output."""

    stream: Literal["stdout", "stderr"]
    text: str = Field(max_length=300_000)


class ServedPage(Said):
    """What a service has answered: `content` is base64, or `held` is the name under which the daemon holds the body."""

    status: Annotated[int, Field(ge=200, le=599)]
    headers: list[
        Annotated[list[Annotated[str, Field(max_length=70_000)]], Field(min_length=2, max_length=2)]
    ] = Field(max_length=100)
    size: Annotated[int, Field(ge=0, le=MOST_PAGE_BYTES)]
    content: str | None = Field(default=None, max_length=200_000)
    held: Annotated[str, Field(pattern="^[0-9a-f]{32}$")] | None = None


class SentBody(Said):
    """The body of an answer that was sent to the store."""

    size: Size


class PutOut(Said):
    """Output of a command behind an offset: `first` is the first offset that is held, `next` where to go on."""

    pieces: list[Piece] = Field(max_length=100_000)
    first: Size
    next: Size
    ended: bool


def done(name: str, answer: dict[str, Any]) -> dict[str, Any]:
    """The answer, which says that it was done. Raises `Refusal` for one that says anything else."""
    if answer.get("state") == "exited":
        return answer
    said = str(answer.get("message") or "the sandbox does not say why")
    message = said.encode(errors="replace").decode()[:MOST_MESSAGE]
    if answer.get("state") == "failed":
        reason = _REASONS.get(str(answer.get("reason")), "ServiceUnavailable")
        raise Refusal(reason, message, kind=SANDBOX, name=name)
    raise Refusal("ServiceUnavailable", f"what became of it is not known: {message}", kind=SANDBOX, name=name)


def read_as(model: type[T], answer: dict[str, Any]) -> T:
    """The fields of an answer. Raises `Refusal` when they are not what an honest daemon says."""
    try:
        return model.model_validate(answer)
    except ValidationError:
        message = "the sandbox's daemon has given an answer that cannot be read; stop the sandbox, and start it again"
        raise Refusal("ServiceUnavailable", message) from None


def decoded(content: str) -> bytes:
    """The bytes of a content in base64. Raises `Refusal` for what is none."""
    try:
        return base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError):
        raise Refusal("ServiceUnavailable", "the sandbox's daemon has sent what is no content") from None
