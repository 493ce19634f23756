"""The builder port: who makes images of a base and a setup, and keeps them."""

from dataclasses import dataclass
from typing import Literal, Protocol

BuildPhase = Literal["running", "completed", "failed", "timed-out", "stopped", "missing"]


@dataclass(frozen=True)
class BuildOrder:
    """What is to be built.

    `id` names the build to people and in events; `base` is a reference with a digest; `repository` is where the image
    goes: a path below that of the deployment.
    """

    id: str
    base: str
    setup: str
    repository: str


@dataclass(frozen=True)
class BuildReport:
    """How a build is. `missing`: the builder does not know it, or could not bring it to any end.

    `why` is the builder's word on a build that did not come to an image, `log` the end of what it has put out.
    """

    phase: BuildPhase
    why: str = ""
    log: str = ""


class ImageBuilder(Protocol):
    """Every call may be repeated. Each raises `RetryableError` when trying later may help, `TerminalError` when not."""

    def start(self, order: BuildOrder, token: str) -> str:
        """Starts a build, unless one was started under this token lately, and returns the builder's id of it.

        Raises `RetryableError` also while as many builds run as may.
        """
        ...

    def state(self, build: str) -> BuildReport: ...

    def stop(self, build: str) -> None:
        """Asks for the end of a build; one that has ended or is unknown is fine."""
        ...

    def made(self, repository: str, build: str) -> str:
        """The reference, with its digest, of the image that a completed build has made.

        Raises `TerminalError` when the repository has none of this build.
        """
        ...

    def holds(self, repository: str, image: str) -> bool:
        """Whether a repository has an image, by its digest; a repository that is not there has none."""
        ...

    def remove(self, repository: str) -> None:
        """Removes a repository with all that is in it; one that is not there is fine."""
        ...
