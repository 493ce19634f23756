"""Kind `Secret`: values that can be written and never read back (NOD-465, NODQ-101)."""

import hashlib
import json
from typing import Annotated

from pydantic import AfterValidator, Field

from nodus_core.resources.checks import check
from nodus_core.resources.columns import AGE, NAME, REVISION, Column, joined
from nodus_core.resources.fields import SecretField, Spec, Str, problem, too_large

MOST_FIELDS = 100
MOST_BYTES = 65_536
"""Bytes of all fields and values together, as JSON: what one secret of Secrets Manager holds."""


@check(minLength=1)
def _not_empty(value: str) -> str:
    if not value:
        raise problem("must not be empty")
    return value


def _fits(data: dict[str, str]) -> dict[str, str]:
    size = len(json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode())
    if size > MOST_BYTES:
        raise too_large(f"has {size} bytes of names and values, at most {MOST_BYTES} are taken")
    return data


Data = Annotated[
    dict[SecretField, Annotated[Str, _not_empty]],
    Field(min_length=1, max_length=MOST_FIELDS),
    AfterValidator(_fits),
]


class SecretSpec(Spec):
    """Values that can be written and never read back: what is read has no `data`, and to apply it so changes none."""

    data: Data | None = Field(
        default=None,
        description="Values by the name of their field (letters, digits, _ . and -), not empty, 64 KiB together as JSON. "
        "It takes the place of all values that there are, and is never read back. Left out: they stay.",
    )


def sealed_digest(text: str, salt: str) -> str:
    """A digest that knows a text again and, unlike a plain hash, gives no short or guessable value away.

    Slow on purpose (scrypt: 16 MiB and some 50 ms for each guess), under a salt that no other text shares.
    """
    return hashlib.scrypt(text.encode(), salt=salt.encode(), n=2**14, r=8, p=1, dklen=32).hex()


COLUMNS = (
    NAME,
    Column("Fields", joined("status.fields"), "Names of the fields; their values are never shown."),
    REVISION,
    AGE,
)
