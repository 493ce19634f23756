"""A terminal in a sandbox: the body of `POST …/sandboxes/NAME/terminals`."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, StringConstraints

from nodus_core.resources.fields import Folder, RequestKey, Script, Spec, Str
from nodus_core.resources.manifest import read_body

MOST_CELLS = 1000
COLUMNS, ROWS = 80, 24
TERM = "xterm-256color"

Cells = Annotated[int, Field(ge=1, le=MOST_CELLS)]


class SandboxTerminal(Spec):
    """What is to be opened."""

    command: Script | None = Field(
        default=None,
        description="Shell command line to run on it, at most 64 KiB. Left out: an interactive shell.",
    )
    working_dir: Folder | None = Field(
        default=None, description="Folder to begin in. Left out: the working folder of the sandbox."
    )
    columns: Cells = Field(default=COLUMNS, description="Width of the window, 1 to 1000 characters.")
    rows: Cells = Field(default=ROWS, description="Height of the window, 1 to 1000 lines.")
    term: Annotated[Str, StringConstraints(pattern=r"^[A-Za-z0-9+._-]{1,64}$")] = Field(
        default=TERM, description="Type of the terminal, the variable TERM."
    )
    request_key: RequestKey = Field(
        description="Key of the request, 1 to 128 bytes: sent again with it within a day, it is the same terminal, and "
        "another request is refused with IdempotencyKeyConflict."
    )


def read_terminal(body: Mapping[str, Any]) -> SandboxTerminal:
    """The terminal in a request body. Raises `Refusal` naming every field that is not right."""
    return read_body(SandboxTerminal, "SandboxTerminal", body)
