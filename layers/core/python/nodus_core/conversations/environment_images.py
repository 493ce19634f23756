"""Environment images of a project: each stands for one digest, under a name (NOD-446 … NOD-453, NODQ-104).

One without `spec.setup` is Completed or Failed by the call that makes or changes it. One with a setup is Building
until `BuildKeeping` has brought its build to an end (decision 29).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from nodus_core.access.door import Place
from nodus_core.conversations.definitions import Definitions
from nodus_core.conversations.images import KIND, Images
from nodus_core.conversations.promises import Promise
from nodus_core.conversations.races import look_again
from nodus_core.conversations.shelf import Outcome, scope_of
from nodus_core.journal.image_builds import left, superseded, wanted
from nodus_core.journal.objects import versioned
from nodus_core.journal.store import Operation
from nodus_core.kernel.errors import Refusal
from nodus_core.kernel.image_builds import ImageBuild
from nodus_core.kernel.objects import Object
from nodus_core.kernel.times import stamp
from nodus_core.resources.environmentimage import BUILDING, COMPLETED, FAILED
from nodus_core.resources.manifest import Manifest
from nodus_core.resources.patch import same
from nodus_core.sandboxes.recipes import MOST_PACKED, packed

UNPULLABLE = "ImageUnpullable"
BUILD_FAILED = "BuildFailed"
BUILD_LOST = "BuildLost"
"""Reasons of a failed image."""

_NO_IMAGES = (
    "NoImages",
    "This deployment has no container images: sandboxes have the machine's own tools. Deploy to AWS to use it.",
)
NO_BUILDS = (
    "NoBuilds",
    "This deployment builds no images: its operator can deploy it with imageBuild (docs/operations.md). Or build the "
    "image yourself, FROM the image that spec.image names, push it to a public registry, and name that as spec.image "
    "without spec.setup.",
)
_TOO_LONG = (
    "SetupTooLong",
    f"spec.setup has more than {MOST_PACKED} characters when it is compressed, and a build takes no more: let it fetch "
    "what it installs.",
)
_NO_BASE = (
    "BaseNotBuildable",
    "spec.image names an EnvironmentImage that was built, and what was built for it is its own: no build may read it, and "
    "it goes with it. Name that one where it is used; for another setup beside its own name the image that it starts from "
    "here, and put both setups into this one.",
)


class Found(NamedTuple):
    """What an image stands for: the object's status, and what goes with it into the object's commit."""

    status: dict[str, Any]
    operations: tuple[Operation, ...] = ()


@dataclass(frozen=True)
class EnvironmentImages(Definitions):
    """Use cases of EnvironmentImages. What one stands for is found out when it is made, changed or built again; runs
    and Sandboxes keep the digest that they were made with (NOD-448)."""

    kind: str = KIND
    images: Images = field(kw_only=True)

    def commit(self, obj: Object, manifest: Manifest, promised: Promise | None, *more: Operation) -> Outcome:
        found = self._found(obj, manifest.spec)
        return super().commit(replace(obj, status=found.status), manifest, promised, *more, *found.operations)

    def revise(self, old: Object, manifest: Manifest, *, exact: bool) -> Outcome:
        """One try of a change; another spec stands for another image, and a build for the old one is ended."""
        if same(self.shelf.spec(old), manifest.spec):
            return super().revise(old, manifest, exact=exact)
        found = self._found(old, manifest.spec)
        new = replace(old, status=found.status)
        return self.shelf.revise(new, manifest, *found.operations, exact=exact)

    def removed(self, old: Object) -> Sequence[Operation]:
        """The end of a build that runs, and of what builds have made, once nobody is made of it."""
        now = self.shelf.clock.now()
        return (*self._ended(old), *((left(old, now),) if old.status.get("builds") else ()))

    def build(self, place: Place, name: str) -> Outcome:
        """Finds out anew what the image stands for: a tag may have moved. One that is being built goes on.

        Raises `Refusal`: `NotFound`, `Conflict`.
        """

        def attempt() -> Outcome:
            old = self.shelf.find(place, KIND, name)
            spec = self.shelf.spec(old)
            if old.status.get("state") == BUILDING:
                return Outcome(old, spec)
            found = self._found(old, spec)
            now = self.shelf.clock.now()
            new = versioned(replace(old, status=found.status), now)
            self.shelf.journal.objects.replace(old, new, now, *found.operations)
            return Outcome(new, spec)

        return look_again(KIND, name, attempt)

    def _found(self, obj: Object, spec: dict[str, Any]) -> Found:
        """What the spec stands for: Completed with a digest, Failed and why, or Building.

        Raises `RetryableError`: a registry is silent.
        """
        now, builds = self.shelf.clock.now(), int(obj.status.get("builds", 0))
        ended, at = self._ended(obj), {"checkedAt": stamp(now)}
        known = {**({"builds": builds} if builds else {}), **at}
        status = self._resolved(obj, spec)
        if status["state"] != BUILDING:
            return Found({**status, **known}, ended)
        name = f"{obj.uid}-{builds + 1}"
        setup = self.shelf.payloads.put(scope_of(obj), str(spec["setup"]))
        build = ImageBuild(name, obj.key, obj.uid, status.pop("base"), setup, now)
        return Found({**status, "build": name, "builds": builds + 1, **at}, (*ended, wanted(build, now)))

    def _ended(self, obj: Object) -> tuple[Operation, ...]:
        """What ends the build that an object waits for, if it does."""
        build = obj.status.get("build")
        return () if build is None else (superseded(str(build), self.shelf.clock.now()),)

    def _resolved(self, obj: Object, spec: dict[str, Any]) -> dict[str, Any]:
        """State, and what comes with it; of one that is to be built also its `base`, by its digest."""
        sources, setup = self.images.sources, spec.get("setup")
        if not sources.has_images:
            return failed(*_NO_IMAGES)
        if setup and sources.builds is None:
            return failed(*NO_BUILDS)
        if setup and len(packed(str(setup))) > MOST_PACKED:
            return failed(*_TOO_LONG)
        try:
            pinned = self.images.pinned(obj.key, str(spec["image"]))
        except Refusal as refusal:
            message = "; ".join(cause.message for cause in refusal.causes) or refusal.message
            return failed(UNPULLABLE, message)
        if str(pinned.pull).startswith(f"{sources.builds}/"):
            return failed(*_NO_BASE)
        if not setup:
            return {"state": COMPLETED, "digest": pinned.digest, "reference": pinned.pull}
        return {"state": BUILDING, "base": pinned.pull}


def failed(reason: str, message: str) -> dict[str, Any]:
    """State, reason and message of an image that cannot be used."""
    return {"state": FAILED, "reason": reason, "message": message}
