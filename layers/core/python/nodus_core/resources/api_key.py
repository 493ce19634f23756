"""Kind `ApiKey`: a bearer key of an organization. Its token is shown once, in the answer that makes it."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from nodus_core.kernel.errors import Cause
from nodus_core.kernel.times import stamp
from nodus_core.resources.agentrun import INSTANT, deadline
from nodus_core.resources.checks import check, whole
from nodus_core.resources.columns import AGE, NAME, Column, Shown, joined, pick, readiness
from nodus_core.resources.durations import SAID
from nodus_core.resources.fields import (
    LABEL_FORM,
    LONGEST_LABEL,
    Spec,
    Str,
    Whole,
    is_label,
    misplaced,
    problem,
)
from nodus_core.resources.patch import same

ALL = "*"
MOST_WORDS = 100
FASTEST = 1_000
LARGEST_BURST = 10_000
_SOME_DAY = datetime(2000, 1, 1, tzinfo=UTC)


@check(pattern=whole(re.compile(re.escape(ALL)), LABEL_FORM), maxLength=LONGEST_LABEL)
def _project(value: str) -> str:
    if value != ALL and not is_label(value):
        raise problem("must be the name of a project, or * for all")
    return value


@check(pattern=whole(INSTANT), format="date-time")
def _moment(value: str) -> str:
    if "T" not in value.upper():
        raise problem("must be a time with a zone such as 2030-01-01T00:00:00Z; a duration goes into ttl")
    return _readable(value)


@check(**SAID)
def _duration(value: str) -> str:
    if "T" in value.upper():
        raise problem("must be a duration such as 12h or 30d; a time goes into expiresAt")
    return _readable(value)


def _readable(value: str) -> str:
    try:
        deadline(value, _SOME_DAY)
    except ValueError as error:
        raise problem(str(error)) from None
    return value


class RateLimit(Spec):
    """How often the key may be used: steadily, and at once above that."""

    requests_per_second: Annotated[Whole, Field(ge=1, le=FASTEST)] | None = Field(
        default=None,
        description="Calls of a second that are taken steadily. Left out: the server's default (100).",
    )
    burst: Annotated[Whole, Field(ge=1, le=LARGEST_BURST)] | None = Field(
        default=None,
        description="Calls that are taken at once after a while without any. Left out: the server's default (200).",
    )


class ApiKeySpec(Spec):
    """A bearer key of an organization; it never changes: make another key instead."""

    permissions: Annotated[list[Str], Field(min_length=1, max_length=MOST_WORDS)] | None = Field(
        default=None,
        description="What the key may do: `PLURAL:read` or `PLURAL:write` of a kind, a role, or `*` for everything. "
        "Either this or `role`; more than its maker holds is refused with 403.",
    )
    role: Literal["viewer", "editor", "admin"] | None = Field(
        default=None,
        description="What the key may do, in one word: `viewer` reads, `editor` also writes what is in projects but "
        "Budgets, `admin` also everything else. Either this or `permissions`.",
    )
    projects: Annotated[list[Annotated[Str, _project]], Field(min_length=1, max_length=MOST_WORDS)] = Field(
        description="Names of the projects that the key reaches, or `*` for all; only with `*` does it reach what "
        "is of the organization itself."
    )
    expires_at: Annotated[Str, _moment] | None = Field(
        default=None,
        description="When the key stops to work: a moment with a zone that lies ahead, by ten years at most. "
        "Without it and `ttl`: never.",
    )
    ttl: Annotated[Str, _duration] | None = Field(
        default=None,
        description="After how long the key stops to work: a duration from its creation, stored and shown as "
        "`expiresAt`, beside which it is refused.",
    )
    rate_limit: RateLimit | None = Field(
        default=None,
        description="How often the key may be used; calls beyond are refused with 429. Left out: the server's default.",
    )

    @model_validator(mode="after")
    def _one_of_each(self) -> Self:
        if (self.permissions is None) == (self.role is None):
            raise misplaced("permissions", "is required, or role; not both")
        if self.ttl is not None and self.expires_at is not None:
            raise misplaced("ttl", "goes only without expiresAt")
        return self

    @classmethod
    def changed(cls, old: dict[str, Any], new: dict[str, Any]) -> Iterator[Cause]:
        """Nothing of it can change."""
        for name in sorted(old.keys() | new.keys()):
            if name not in old or name not in new or not same(old[name], new[name]):
                yield Cause(f"spec.{name}", "cannot change: make another key, and delete this one")

    @property
    def words(self) -> tuple[str, ...]:
        """The permission words: scopes and roles."""
        return (self.role,) if self.role is not None else tuple(self.permissions or ())

    def expiry(self, made: datetime) -> datetime | None:
        """When a key that was made then expires; None: never."""
        text = self.expires_at or self.ttl
        return None if text is None else deadline(text, made)


def with_expiry(spec: dict[str, Any], made: datetime) -> dict[str, Any]:
    """A checked spec whose end is a moment in UTC, counted from when the key was made (FLD-17)."""
    expiry = ApiKeySpec.model_validate(spec).expiry(made)
    if expiry is None:
        return spec
    rest = {name: value for name, value in spec.items() if name != "ttl"}
    return {**rest, "expiresAt": stamp(expiry).replace(".000Z", "Z")}


def expiry_of(spec: Mapping[str, Any]) -> datetime | None:
    """When a key whose spec `with_expiry` has made expires; None: never."""
    text = spec.get("expiresAt")
    return None if text is None else datetime.fromisoformat(text)


def _permissions(shown: Shown) -> str:
    return str(pick(shown, "spec.role") or joined("spec.permissions")(shown))


COLUMNS = (
    NAME,
    Column("Prefix", "status.prefix", "The beginning of its token."),
    Column("Permissions", _permissions, "Its role, or its scopes."),
    Column("Projects", joined("spec.projects"), "Where it may be used."),
    Column("State", readiness, "Ready: it works; Expired: it works no more."),
    Column("Expires", "spec.expiresAt", "When it stops to work; never where nothing is said."),
    Column("Last-Used", "status.lastUsedAt", "When it was used last, to about a minute.", "date"),
    AGE,
    Column("Made-By", "status.createdBy", "The key that made it.", priority=1),
)
