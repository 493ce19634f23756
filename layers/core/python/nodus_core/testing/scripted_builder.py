"""A builder of images in memory: builds take their time, end as their setup says, and tokens are known for a while."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from nodus_core.journal.builder import BuildOrder, BuildReport
from nodus_core.journal.ports import Clock
from nodus_core.kernel.errors import RetryableError, TerminalError
from nodus_core.kernel.ids import digest

TOKENS_HOLD = timedelta(minutes=5)
HOST = "123456789012.dkr.ecr.eu-central-1.amazonaws.com"
PLACE = f"{HOST}/nodus/images"
"""Below it stands what is built."""

Ending = Callable[[BuildOrder], BuildReport]


@dataclass
class Build:
    """One that was started."""

    id: str
    order: BuildOrder
    token: str
    started_at: datetime
    stopped: bool = False


def completes(order: BuildOrder) -> BuildReport:
    """Every build comes to an image, but for one whose setup says otherwise."""
    if order.setup.startswith("false"):
        return BuildReport("failed", "exit status 1", "E: no such package\n")
    return BuildReport("completed")


@dataclass
class ScriptedBuilder:
    """`ImageBuilder` under a test's control.

    `takes` is how long a build runs, `ending` what it then comes to; `refusal` is raised by every start before it
    does anything, `lost` by the next one after it has begun a build; `forgotten` builds are unknown.
    """

    clock: Clock
    takes: timedelta = timedelta(minutes=3)
    ending: Ending = completes
    builds: dict[str, Build] = field(default_factory=dict[str, Build])
    refusal: Exception | None = None
    lost: int = 0
    forgotten: set[str] = field(default_factory=set[str])
    removed: list[str] = field(default_factory=list[str])

    def start(self, order: BuildOrder, token: str) -> str:
        if self.refusal is not None:
            raise self.refusal
        now = self.clock.now()
        known = [
            build
            for build in self.builds.values()
            if build.token == token and now < build.started_at + TOKENS_HOLD
        ]
        if not known:
            number = f"nodus-environment-images:{len(self.builds) + 1}"
            known = [Build(number, order, token, now)]
            self.builds[number] = known[0]
        elif known[0].order != order:
            raise TerminalError("the token was used with other parameters")
        if self.lost:
            self.lost -= 1
            raise RetryableError("no answer")
        return known[0].id

    def state(self, build: str) -> BuildReport:
        found = self.builds.get(build)
        if found is None or build in self.forgotten:
            return BuildReport("missing")
        if found.stopped:
            return BuildReport("stopped", "Build was stopped.")
        if self.clock.now() < found.started_at + self.takes:
            return BuildReport("running")
        return self.ending(found.order)

    def stop(self, build: str) -> None:
        found = self.builds.get(build)
        if found is not None and self.state(build).phase == "running":
            found.stopped = True

    def made(self, repository: str, build: str) -> str:
        found = self.builds[build]
        if found.order.repository != repository or repository in self.removed:
            raise TerminalError(f"repository {repository} has no image {build}")
        return f"{PLACE}/{repository}@{self.digest_of(found.order)}"

    def holds(self, repository: str, image: str) -> bool:
        return repository not in self.removed and any(
            self.digest_of(build.order) == image and self.state(build.id).phase == "completed"
            for build in self.builds.values()
            if build.order.repository == repository
        )

    def remove(self, repository: str) -> None:
        self.removed.append(repository)

    @staticmethod
    def digest_of(order: BuildOrder) -> str:
        """What a build of this order comes to."""
        return f"sha256:{digest(f'{order.base} {order.setup}')}"

    @property
    def running(self) -> list[str]:
        """Builds that cost time now."""
        return [build for build in self.builds if self.state(build).phase == "running"]
