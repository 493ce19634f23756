"""Kinds `Organization` and `Project`: who owns objects, and the namespaces that hold them (NOD-003)."""

from typing import Annotated

from pydantic import AfterValidator, Field

from nodus_core.resources.columns import AGE, NAME, Column
from nodus_core.resources.fields import Spec, Str, not_blank, problem

LONGEST_DISPLAY_NAME = 128


def _printable(value: str) -> str:
    if not value.isprintable():
        raise problem("must be printable characters")
    return value


DisplayName = Annotated[Str, Field(max_length=LONGEST_DISPLAY_NAME), not_blank, AfterValidator(_printable)]


class OrganizationSpec(Spec):
    """Who owns projects and keys. The operator makes organizations; they cannot be deleted."""

    display_name: DisplayName | None = Field(
        default=None, description="What people call it: printable characters, not blank."
    )


class ProjectSpec(Spec):
    """A namespace: what holds objects."""

    display_name: DisplayName | None = Field(
        default=None, description="What people call it: printable characters, not blank."
    )


COLUMNS = (NAME, Column("Display-Name", "spec.displayName", "What people call it."), AGE)
