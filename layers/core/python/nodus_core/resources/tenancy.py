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


DisplayName = Annotated[
    Str, Field(max_length=LONGEST_DISPLAY_NAME), AfterValidator(not_blank), AfterValidator(_printable)
]


class OrganizationSpec(Spec):
    """`spec` of an Organization as written. The operator makes them; they cannot be deleted."""

    display_name: DisplayName | None = None


class ProjectSpec(Spec):
    """`spec` of a Project as written."""

    display_name: DisplayName | None = None


COLUMNS = (NAME, Column("Display-Name", "spec.displayName", "What people call it."), AGE)
