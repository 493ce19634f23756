"""What daemons answer to asks, read strictly: everything in it is the agent's word (docs/protocols.md §2, *Asks*)."""

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from nodus_core.kernel.errors import Reason, Refusal
from nodus_core.kernel.objects import SANDBOX

MOST_MESSAGE = 500
"""Characters of a daemon's message that are passed on."""

Size = Annotated[int, Field(ge=0, lt=2**62)]
Version = Annotated[str, Field(pattern=r"^[0-9a-f-]{1,60}$")]

_REASONS: dict[str, Reason] = {
    "not_found": "NotFound",
    "not_a_directory": "NotFound",
    "denied": "Forbidden",
    "invalid": "BadRequest",
    **dict.fromkeys(
        ("not_a_file", "exists", "not_empty", "link_loop", "other_device", "no_space"), "Conflict"
    ),
    "conflict": "IdempotencyKeyConflict",
}
"""Of answers that say that nothing was done; any other word is trouble of the sandbox that may pass."""


class _Said(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


T = TypeVar("T", bound=_Said)


class Entry(_Said):
    """One entry of a folder; `named`: its name is text, by which it can be asked for."""

    name: str = Field(max_length=1024)
    named: bool
    type: Literal["File", "Folder", "Link", "Other"]
    size: Size
    mode: Size
    mtime_ns: int = Field(alias="mtimeNs", gt=-(2**62), lt=2**62)
    target: str | None = Field(default=None, max_length=1024)
    etag: Version | None = None


class ListedFolder(_Said):
    """A page of a folder, or the one entry that a file is."""

    folder: bool
    entries: list[Entry] = Field(max_length=1000)
    next: str | None = Field(default=None, max_length=2000)


def done(name: str, path: str, answer: dict[str, Any]) -> dict[str, Any]:
    """The answer, which says that it was done. Raises `Refusal` for one that says anything else."""
    if answer.get("state") == "exited":
        return answer
    said = str(answer.get("message") or "the sandbox does not say why")
    message = said.encode(errors="replace").decode()[:MOST_MESSAGE]
    if answer.get("state") == "failed":
        reason = _REASONS.get(str(answer.get("reason")), "ServiceUnavailable")
        raise Refusal(reason, message, kind=SANDBOX, name=name)
    raise Refusal("ServiceUnavailable", f"{path[:200]!r}: {message}", kind=SANDBOX, name=name)


def read_as(model: type[T], answer: dict[str, Any]) -> T:
    """The fields of an answer. Raises `Refusal` when they are not what an honest daemon says."""
    try:
        return model.model_validate(answer)
    except ValidationError:
        message = "the sandbox's daemon has given an answer that cannot be read; stop the sandbox, and start it again"
        raise Refusal("ServiceUnavailable", message) from None
