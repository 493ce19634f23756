"""Every name that a person or another program may rely on, written once."""

from dataclasses import dataclass

from infra.settings import MAIN_STAGE

DUE_INDEX = "due"
METRICS_NAMESPACE = "Nodus"
LINK_STAGE = "link"
HTTP_STAGE = "$default"
SANDBOX_CONTAINER = "sandbox"
CATALOGUE_IMAGE = "nodus/agent-tools"
"""What people call the deployment's own image, whatever its repository is called."""


@dataclass(frozen=True)
class Names:
    """Physical names of one stage's resources.

    Attributes:
        stage: the deployment's stage.
    """

    stage: str

    @property
    def prefix(self) -> str:
        """What every name begins with: `nodus` for the main stage, `nodus-STAGE` for another."""
        return "nodus" if self.stage == MAIN_STAGE else f"nodus-{self.stage}"

    def of(self, what: str) -> str:
        """The name of a resource, for example `nodus-line`."""
        return f"{self.prefix}-{what}"

    def path(self, what: str) -> str:
        """The name of a thing whose names are paths, for example `nodus/providers`."""
        return f"{self.prefix}/{what}"
