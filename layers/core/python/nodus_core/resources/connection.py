"""Kind `Connection`: a code host that a project may read repositories from (NODQ-102, NOD-151)."""

from typing import Annotated, Literal

from pydantic import Field

from nodus_core.resources.columns import AGE, NAME, Column, joined
from nodus_core.resources.fields import Repository, Spec, Whole

MOST_REPOSITORIES = 500
LARGEST_INSTALLATION = 2**53 - 1


class GitHub(Spec):
    """An installation of the GitHub App; without `repositories`, all that it may read."""

    installation_id: Annotated[Whole, Field(ge=1, le=LARGEST_INSTALLATION)] = Field(
        description="Number that GitHub gave the installation of the app."
    )
    repositories: Annotated[list[Repository], Field(min_length=1, max_length=MOST_REPOSITORIES)] | None = (
        Field(
            default=None,
            description="The only repositories that may be read, as OWNER/NAME. Left out: all that the installation "
            "may read.",
        )
    )


class ConnectionSpec(Spec):
    """A code host that a project may read repositories from."""

    type: Literal["GitHub"] = Field(description="The code host.")
    github: GitHub = Field(description="The installation by which it is read.")


COLUMNS = (
    NAME,
    Column("Type", "spec.type", "The code host."),
    Column("Installation", "spec.github.installationId", "Number of the app's installation.", "integer"),
    AGE,
    Column("Repositories", joined("spec.github.repositories"), "The only ones that may be read.", priority=1),
)
