"""Kind `EnvironmentImage`: an image for sandboxes, made once and named by its digest (NODQ-104)."""

from nodus_core.resources.columns import AGE, NAME, Column
from nodus_core.resources.fields import Image, Script, Spec


class EnvironmentImageSpec(Spec):
    """`spec` of an EnvironmentImage as written: the image that it starts from, and what is installed into it."""

    image: Image
    setup: Script | None = None


COLUMNS = (
    NAME,
    Column("State", "status.state", "Building, Completed or Failed."),
    Column("From", "spec.image", "The image that it starts from."),
    Column("Digest", "status.digest", "What was made."),
    AGE,
)
