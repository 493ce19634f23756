"""Commits on builds of images (decision 29).

                  ┌──────────────────────────────────────────► drop: it was never asked for
wanted ──► ask ──► note ──► wait … ──► settle                  nobody looks any more
              └──────┴────────┴─► unwanted ──► (it is stopped) ──► drop
`wanted` and `superseded` are parts of the object's own commits: a build that counts is always the one that its object
names. Each row is due until it is gone, so that the sweeper finds it whatever was lost.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from nodus_core.journal.codec import to_value
from nodus_core.journal.keys import image_build_key, left_images_key
from nodus_core.journal.lines import due
from nodus_core.journal.store import Absent, Delete, Equals, Operation, Present, Put, Update, both
from nodus_core.journal.writer import Writer, stored
from nodus_core.kernel.image_builds import ImageBuild, LeftImages
from nodus_core.kernel.objects import Object
from nodus_core.kernel.times import stamp

BETWEEN_LOOKS = timedelta(minutes=1)
"""How often a build is looked at, should no event tell of its end."""

GRACE = timedelta(hours=1)
"""How long a deleted image's builds stay in any case: who has read it just before may still be made of one."""


class ImageBuilds:
    """Each commit raises `ConditionFailed`: look again and decide anew."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def ask(self, build: ImageBuild, tries: int, now: datetime) -> None:
        """The builder is about to be asked, under the token of this try.

        Condition: the build is wanted and not noted, and nobody has asked since it was read.
        """
        key = image_build_key(build.id)
        seen = Absent("asked_at") if build.asked_at is None else Equals("asked_at", stamp(build.asked_at))
        self._writer.commit(
            "ask-build",
            Update(
                key,
                when=both(Present(), Equals("unwanted", False), Absent("build"), seen),
                assign={"tries": tries, "asked_at": stamp(now), **due(key.pk, now + BETWEEN_LOOKS)},
            ),
        )

    def note(self, build: ImageBuild, number: str, now: datetime) -> None:
        """The builder's id of a build, also of one that is unwanted by now: it is to be stopped.

        Condition: the row is there, without an id.
        """
        key = image_build_key(build.id)
        self._writer.commit(
            "note-build",
            Update(
                key,
                when=both(Present(), Absent("build")),
                assign={"build": number, **due(key.pk, now + BETWEEN_LOOKS)},
            ),
        )

    def wait(self, build: ImageBuild, now: datetime) -> None:
        """It is looked at again later. Condition: it is wanted still."""
        key = image_build_key(build.id)
        self._writer.commit(
            "await-build",
            Update(
                key,
                when=both(Present(), Equals("unwanted", False)),
                assign=due(key.pk, now + BETWEEN_LOOKS),
            ),
        )

    def settle(self, build: ImageBuild, shown: Iterable[Operation]) -> None:
        """The build has come to something, which its object shows. Condition: it is wanted, beside those of `shown`."""
        gone = Delete(image_build_key(build.id), when=both(Present(), Equals("unwanted", False)))
        self._writer.commit("settle-build", gone, *shown)

    def drop(self, build: ImageBuild) -> None:
        """Nobody wants it, and nothing runs for it any more. Condition: its id is the one seen."""
        same = Absent("build") if build.build is None else Equals("build", build.build)
        self._writer.commit("drop-build", Delete(image_build_key(build.id), when=same))

    def look_on(self, left: LeftImages, passed: tuple[str, ...], at: datetime) -> None:
        """Deleted images are looked at again from here on, at that moment. Condition: nobody has since."""
        key = left_images_key(left.uid)
        seen = Equals("passed", to_value(left.passed)) if left.passed else Absent("passed")
        self._writer.commit(
            "keep-images",
            Update(key, when=both(Present(), seen), assign={"passed": to_value(passed), **due(key.pk, at)}),
        )

    def forget(self, left: LeftImages) -> None:
        """The images are removed."""
        self._writer.commit("forget-images", Delete(left_images_key(left.uid)))


def wanted(build: ImageBuild, now: datetime) -> Operation:
    """Part of the commit by which an object names a new build. Condition: there is none of this id."""
    key = image_build_key(build.id)
    return Put(stored(key, build, **due(key.pk, now)), when=Absent())


def superseded(build: str, now: datetime) -> Operation:
    """Part of the commit by which an object names its build no more. Condition: the build has not come to anything."""
    key = image_build_key(build)
    return Update(key, when=Present(), assign={"unwanted": True, **due(key.pk, now)})


def left(obj: Object, now: datetime) -> Operation:
    """Part of the commit that removes an object for which images were built."""
    key = left_images_key(obj.uid)
    return Put(stored(key, LeftImages(obj.key, obj.uid), **due(key.pk, now + GRACE)), when=Absent())
