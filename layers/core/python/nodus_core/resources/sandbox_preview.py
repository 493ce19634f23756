"""A preview of a service in a sandbox: the body of `POST …/sandboxes/NAME/previews` (NOD-417, NODQ-69)."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any

from pydantic import Field

from nodus_core.resources.durations import between, duration
from nodus_core.resources.fields import Spec, Str, Whole
from nodus_core.resources.manifest import read_body

LARGEST_PORT = 65_535
LEAST_TTL, MOST_TTL = "1s", "24h"
TTL = "1h"


class SandboxPreview(Spec):
    """Which service is to be shown, and for how long."""

    port: Annotated[Whole, Field(ge=1, le=LARGEST_PORT)] = Field(
        description="Port at which the service listens in the sandbox, on loopback or on all addresses: 1 to 65535."
    )
    ttl: Annotated[Str, between(LEAST_TTL, MOST_TTL)] = Field(
        default=TTL,
        description="How long the address works: from 1s to 24h, and no longer than the key that asks for it. Left "
        "out: 1h.",
    )

    @property
    def lives(self) -> timedelta:
        """`ttl` as a span."""
        return duration(self.ttl) or timedelta(0)


def read_preview(body: Mapping[str, Any]) -> SandboxPreview:
    """The preview in a request body. Raises `Refusal` naming every field that is not right."""
    return read_body(SandboxPreview, "SandboxPreview", body)
