"""A login by AWS identity: the body of `POST /apis/nodus.dev/v1/logins` (NODQ-98, docs/protocols.md §1)."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from nodus_core.resources.checks import check
from nodus_core.resources.durations import between
from nodus_core.resources.fields import Label, Spec, Str, problem
from nodus_core.resources.manifest import read_body

BODY = "Action=GetCallerIdentity&Version=2011-06-15"
DEFAULT_TTL = "1h"
LONGEST_HEADER = 8_192


@check(pattern="^[ -~]*$")
def _header(value: str) -> str:
    if not (value.isascii() and value.isprintable()):
        raise problem("must be printable ASCII characters in one line")
    return value


Header = Annotated[Str, Field(max_length=LONGEST_HEADER), _header]


class SignedCall(Spec):
    """A request to STS that the client has signed and not sent."""

    method: Literal["POST"] = Field(description="Its method.")
    url: Annotated[Str, Field(max_length=256)] = Field(
        description="Its address: https://sts.amazonaws.com/ or https://sts.REGION.amazonaws.com/, unless the server "
        "is set up for another one."
    )
    headers: Annotated[dict[Annotated[Str, Field(max_length=64)], Header], Field(max_length=20)] = Field(
        description="Its headers by their names: Authorization with the signature, X-Amz-Date, X-Nodus-Server with the "
        "host of this server, and whatever else is signed but Host; printable ASCII."
    )
    body: Literal["Action=GetCallerIdentity&Version=2011-06-15"] = Field(description="Its body.")


class LoginSpec(Spec):
    """What the caller asks for."""

    aws: SignedCall = Field(
        description="The request by which AWS says whose it is: signed for this server within the last 15 minutes, and "
        "used once."
    )
    organization: Label | None = Field(
        default=None,
        description="The organization; the header `Nodus-Org` says the same. Required where the identity is mapped to "
        "several.",
    )
    ttl: Annotated[Str, between("15m", "12h")] | None = Field(
        default=None, description=f"How long the key lives: from 15m to 12h. Left out: {DEFAULT_TTL}."
    )


class Login(Spec):
    """A login by AWS identity. It is no object: nothing of it is stored but the key that it gives."""

    api_version: Literal["nodus.dev/v1"] = Field(description="Version of the schema.")
    kind: Literal["Login"] = Field(description="The kind.")
    metadata: Annotated[dict[str, Any], Field(max_length=0)] | None = Field(
        default=None, description="Holds nothing, and may be left out."
    )
    spec: LoginSpec = Field(description="What is asked for.")


def read_login(body: Mapping[str, Any]) -> LoginSpec:
    """The login in a request body. Raises `Refusal` naming every field that is not right."""
    return read_body(Login, "Login", body).spec
