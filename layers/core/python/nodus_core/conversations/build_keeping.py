"""Builds of images are brought to their end, by whoever looks at them: the sweeper, or the event of a build's end.

wanted ──(look)──► asked for ──► running ──► Completed with a digest, or Failed and why
    └────────────────┴─────────────┴──► unwanted: stopped, and forgotten
Nothing that is heard of a build is believed: it is asked how it is (decision 29).
"""

import logging
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from nodus_core.conversations.environment_images import BUILD_FAILED, BUILD_LOST, KIND, NO_BUILDS, failed
from nodus_core.conversations.races import look_again
from nodus_core.conversations.shelf import Shelf, scope_of
from nodus_core.journal.builder import BuildOrder, BuildReport, ImageBuilder
from nodus_core.journal.objects import projection, versioned
from nodus_core.kernel.errors import ConditionFailed, RetryableError, TerminalError
from nodus_core.kernel.ids import digest
from nodus_core.kernel.image_builds import ImageBuild
from nodus_core.kernel.objects import Object
from nodus_core.kernel.text import neutral
from nodus_core.kernel.times import stamp
from nodus_core.resources.environmentimage import COMPLETED
from nodus_core.sandboxes.references import repository_of

TOKEN_HOLDS = timedelta(minutes=4)
"""How long a builder surely knows a token again; CodeBuild says five minutes."""

UNKNOWN_FOR = timedelta(minutes=10)
"""How long a build that was started may be unknown to its builder before it is lost."""

MOST_SAID = 4_000
"""Characters of a build's own words that a status shows, the last ones."""

_AGAIN = "build it again with nodus sandbox build-image NAME"

_REFUSED = (
    "BuildRefused",
    "The builder does not take the build. The operator of this deployment finds why in the log of the function sweeper; "
    f"once that is mended, {_AGAIN}.",
)
_WORDS = {
    "failed": (
        BUILD_FAILED,
        "The build failed: mend spec.setup, or the image that it starts from, and apply it.",
    ),
    "timed-out": (
        "BuildTimedOut",
        "The build took longer than a build may, or waited too long for its turn: make spec.setup shorter, or "
        f"{_AGAIN}.",
    ),
    "stopped": (
        "BuildStopped",
        f"Somebody has stopped the build in the account of this deployment: {_AGAIN}.",
    ),
    "missing": (BUILD_LOST, f"The builder could not bring the build to an end: {_AGAIN}."),
}

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class BuildKeeping:
    """Use cases on builds. Each may be repeated after a crash at any point. `builder` None: there is none (any more)."""

    shelf: Shelf
    builder: ImageBuilder | None = None

    def look(self, name: str) -> None:
        """Takes a build one step on. One that cannot be taken on now stays due.

        Raises `ConditionFailed` when others have, `RetryableError`, and `TerminalError` when it can never be.
        """
        build = self.shelf.journal.image_build(name)
        if build is None:
            return
        if self.builder is None:
            self._abandon(build)
        elif build.unwanted:
            self._end(self.builder, build)
        elif build.build is None:
            self._ask(self.builder, build)
        else:
            self._judge(self.builder, build, build.build)

    def _abandon(self, build: ImageBuild) -> None:
        if build.unwanted:
            self.shelf.journal.image_builds.drop(build)
        else:
            self._settle(build, failed(*NO_BUILDS))

    def _end(self, builder: ImageBuilder, build: ImageBuild) -> None:
        """One whose id nobody has noted is stopped by whoever asks for it now, or ends by itself: it counts for nobody."""
        if build.build is not None:
            builder.stop(build.build)
        self.shelf.journal.image_builds.drop(build)

    def _ask(self, builder: ImageBuilder, build: ImageBuild) -> None:
        order, now = self._order(build), self.shelf.clock.now()
        if order is None:
            return
        knows = build.asked_at is not None and now < build.asked_at + TOKEN_HOLDS
        tries = build.tries if knows else build.tries + 1
        journal = self.shelf.journal.image_builds
        journal.ask(build, tries, now)
        try:
            number = builder.start(order, digest(f"{build.id} {tries}"))
        except RetryableError as error:  # the row is due again in a minute: builders are often busy
            log.warning("build %s is asked for again: %s", build.id, error)
            return
        except TerminalError:
            log.exception("build %s is refused", build.id)
            self._settle(build, failed(*_REFUSED))
            return
        try:
            journal.note(build, number, self.shelf.clock.now())
        except ConditionFailed:
            noted = self.shelf.journal.image_build(build.id)
            if noted is None or noted.build != number:
                builder.stop(number)  # there is another one, or none is wanted any more

    def _order(self, build: ImageBuild) -> BuildOrder | None:
        """None: its object has another build, or is gone, since the build was read; the row says so, too."""
        obj = self.shelf.journal.object(build.object)
        if obj is None or not names(obj, build):
            return None
        setup = self.shelf.payloads.get(scope_of(obj), build.setup)
        return BuildOrder(build.id, build.base, setup, repository_of(build.object, build.uid))

    def _judge(self, builder: ImageBuilder, build: ImageBuild, number: str) -> None:
        report, now = builder.state(number), self.shelf.clock.now()
        is_young = build.asked_at is not None and now < build.asked_at + UNKNOWN_FOR
        if report.phase == "running" or (report.phase == "missing" and not report.why and is_young):
            self.shelf.journal.image_builds.wait(build, now)
        elif report.phase == "completed":
            self._settle(build, self._made(builder, build, number))
        else:
            self._settle(build, failed(*_told(report)))

    def _made(self, builder: ImageBuilder, build: ImageBuild, number: str) -> dict[str, Any]:
        try:
            reference = builder.made(repository_of(build.object, build.uid), number)
        except TerminalError:
            log.exception("the image of build %s cannot be found", build.id)
            return failed(BUILD_LOST, f"The build has ended and its image is not there: {_AGAIN}.")
        return {"state": COMPLETED, "digest": reference.partition("@")[2], "reference": reference}

    def _settle(self, build: ImageBuild, found: dict[str, Any]) -> None:
        def attempt() -> None:
            obj = self.shelf.journal.object(build.object)
            if obj is None or not names(obj, build):
                return  # the row says so, too: it is ended when it is looked at next
            now = self.shelf.clock.now()
            kept = {"builds": obj.status["builds"], "checkedAt": stamp(now)}
            new = versioned(replace(obj, status={**found, **kept}), now)
            self.shelf.journal.image_builds.settle(build, projection(new, now, over=obj.version))

        look_again(KIND, build.object.name, attempt)


def names(obj: Object, build: ImageBuild) -> bool:
    """Whether a build is the one that its object waits for."""
    return obj.uid == build.uid and obj.status.get("build") == build.id


def _told(report: BuildReport) -> tuple[str, str]:
    """Reason and message of a build that did not come to an image: what to do, then what the builder says."""
    reason, advice = _WORDS[report.phase]
    said = f"{advice} {neutral(report.why)}".rstrip()
    ending = neutral(report.log[-MOST_SAID:])
    return reason, f"{said[:MOST_SAID]}\nThe end of its output:\n{ending}" if ending else said[:MOST_SAID]
