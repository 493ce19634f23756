"""What builds have made for an EnvironmentImage that is deleted goes once nobody is made of it any more.

deleted ──an hour──► looked for in the project's runs and Sandboxes ──► nobody: the repository is removed
                              └─ somebody: looked at again a day later, from there on
New ones cannot come: an image is named by its object, which is gone. So whoever was passed once is never asked again.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from nodus_core.journal.builder import ImageBuilder
from nodus_core.journal.journal import Journal
from nodus_core.journal.ports import Clock
from nodus_core.kernel.image_builds import LeftImages
from nodus_core.kernel.objects import AGENT_RUN, SANDBOX, Object
from nodus_core.kernel.projection import DELETED, FINAL_PHASES
from nodus_core.sandboxes.references import repository_of

RESERVE_S = 15.0
"""Seconds of an invocation that are left when this stops: a page and its questions take less."""

LOOKED_AT_AGAIN = timedelta(days=1)
_KINDS = (AGENT_RUN, SANDBOX)


@dataclass(frozen=True)
class LeftImagesKeeping:
    """Use case of the sweeper. `builder` None: there is none (any more), and what it has made stays."""

    journal: Journal
    clock: Clock
    builder: ImageBuilder | None = None

    def clear(self, uid: str, remaining: Callable[[], float]) -> bool:
        """Removes what was built for a deleted object, if nobody is made of it. Returns whether it is gone.

        `remaining`: seconds that the invocation has left. May be repeated after a crash at any point. Raises
        `ConditionFailed` when somebody else does the same, `RetryableError`.
        """
        left = self.journal.left_images(uid)
        if left is None:
            return True
        now, builder = self.clock.now(), self.builder
        if builder is None:
            self.journal.image_builds.look_on(left, left.passed, now + LOOKED_AT_AGAIN)
            return False
        passed = left.passed
        for kind, obj in self._objects(left):
            if remaining() < RESERVE_S:
                return self._later(left, passed, now)
            if is_made_of(obj, left, builder):
                return self._later(left, passed, now + LOOKED_AT_AGAIN)
            passed = (kind, obj.key.name)
        builder.remove(repository_of(left.object, left.uid))
        self.journal.image_builds.forget(left)
        return True

    def _later(self, left: LeftImages, passed: tuple[str, ...], at: datetime) -> bool:
        self.journal.image_builds.look_on(left, passed, at)
        return False

    def _objects(self, left: LeftImages) -> Iterator[tuple[str, Object]]:
        """Runs and Sandboxes of the project that were not passed yet."""
        begun, after = left.passed or (_KINDS[0], None)
        org, project = left.object.org, left.object.project
        for kind in _KINDS[_KINDS.index(begun) :]:
            position = after if kind == begun else None
            while True:
                page, position = self.journal.objects_of(org, project, kind, after=position)
                yield from ((kind, obj) for obj in page)
                if position is None:
                    break


def is_made_of(obj: Object, left: LeftImages, builder: ImageBuilder) -> bool:
    """Whether a run that is not over, or a Sandbox of one's own, may start a machine of what was built.

    One that shows no digest yet may: what it has pinned stands in its context alone until then.
    """
    phase, status = obj.status.get("phase"), obj.status
    if obj.owner is not None or phase in FINAL_PHASES or phase == DELETED:
        return False
    shown = status.get("sandbox", {}) if obj.key.kind == AGENT_RUN else status
    image, digest = shown.get("image"), shown.get("imageDigest")
    if image is None or digest is None:
        return image in (None, left.object.name)
    return image == left.object.name and builder.holds(repository_of(left.object, left.uid), digest)
