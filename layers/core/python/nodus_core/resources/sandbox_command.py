"""A command in a Sandbox: the body of `POST …/sandboxes/NAME/commands` (NODQ-67, NODQ-68)."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from nodus_core.resources.durations import between
from nodus_core.resources.fields import Folder, RequestKey, Script, Spec, Str
from nodus_core.resources.manifest import read_body


class SandboxCommand(Spec):
    """What is to be run."""

    command: Script = Field(description="Shell command line; not blank, at most 64 KiB.")
    working_dir: Folder | None = Field(
        default=None, description="Folder to run it in. Left out: the working folder of the sandbox."
    )
    timeout: Annotated[Str, between("1s", "24h")] | None = Field(
        default=None, description="After how much time it is ended: from 1s to 24h. Left out: 60s."
    )
    request_key: RequestKey = Field(
        description="Key of the request, 1 to 128 bytes: sent again with it within a day, the command is run once, and "
        "another one is refused with IdempotencyKeyConflict."
    )


def read_command(body: Mapping[str, Any]) -> SandboxCommand:
    """The command in a request body. Raises `Refusal` naming every field that is not right."""
    return read_body(SandboxCommand, "SandboxCommand", body)
