"""Kind `EnvironmentImage`: an image for sandboxes, made once and named by its digest (NODQ-104)."""

from pydantic import Field

from nodus_core.resources.columns import AGE, NAME, Column
from nodus_core.resources.fields import Image, Script, Spec

BUILDING, COMPLETED, FAILED = "Building", "Completed", "Failed"
"""`status.state` of an image; only completed ones can be used (NOD-447)."""


class EnvironmentImageSpec(Spec):
    """An image for sandboxes: the one that it starts from, and what is installed into it."""

    image: Image = Field(description="The image that it starts from.")
    setup: Script | None = Field(
        default=None,
        description="Shell command that installs what the image adds; at most 64 KiB. Left out: it adds nothing.",
    )


COLUMNS = (
    NAME,
    Column("State", "status.state", "Building, Completed or Failed."),
    Column("From", "spec.image", "The image that it starts from."),
    Column("Digest", "status.digest", "What was made."),
    AGE,
)
