"""Builds of images, and what deleted images leave: what their rows mean (decision 29)."""

from dataclasses import dataclass
from datetime import datetime

from nodus_core.kernel.objects import ObjectKey
from nodus_core.kernel.text import Text


@dataclass(frozen=True)
class ImageBuild:
    """One build of an EnvironmentImage: `id` is the object's uid and the number of the build.

    `base` is the reference, with its digest, of the image that it starts from; `setup` is what is run in it. `tries`
    counts the tokens under which the builder was asked, `asked_at` is when it was asked last, None: never; `build` is
    the builder's id of it. `unwanted`: the object has another build since, or is deleted, and nobody will use this one.
    """

    id: str
    object: ObjectKey
    uid: str
    base: str
    setup: Text
    created_at: datetime
    tries: int = 0
    asked_at: datetime | None = None
    build: str | None = None
    unwanted: bool = False


@dataclass(frozen=True)
class LeftImages:
    """The images that were built for an EnvironmentImage which is deleted, and stay while somebody is made of one.

    `passed` is how far one has looked for them: a kind, and the name of its object that was looked at last.
    """

    object: ObjectKey
    uid: str
    passed: tuple[str, ...] = ()
