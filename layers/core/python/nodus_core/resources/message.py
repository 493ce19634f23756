"""A message to a run: the body of `POST …/agentruns/NAME/messages` (NOD-183)."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from nodus_core.resources.fields import Prompt, RequestKey, Spec, not_blank
from nodus_core.resources.manifest import read_body


class Message(Spec):
    """What is sent: the next prompt, and the key under which it is delivered once."""

    payload: Annotated[Prompt, not_blank] = Field(
        description="The run's next prompt; not blank, at most 256 KiB."
    )
    message_key: RequestKey = Field(
        description="Key of the message, 1 to 128 bytes: sent again with it, the payload is delivered once, and another "
        "one is refused with MessageKeyConflict."
    )


def read_message(body: Mapping[str, Any]) -> Message:
    """The message in a request body. Raises `Refusal` naming every field that is not right."""
    return read_body(Message, "Message", body)
