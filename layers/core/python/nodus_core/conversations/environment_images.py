"""Environment images of a project: each stands for one digest, under a name (NOD-446 … NOD-453, NODQ-104)."""

from dataclasses import dataclass, field, replace
from typing import Any

from nodus_core.access.door import Place
from nodus_core.conversations.definitions import Definitions
from nodus_core.conversations.images import KIND, Images
from nodus_core.conversations.promises import Promise
from nodus_core.conversations.races import look_again
from nodus_core.conversations.shelf import Outcome
from nodus_core.journal.objects import versioned
from nodus_core.journal.store import Operation
from nodus_core.kernel.errors import Refusal
from nodus_core.kernel.objects import Object, ObjectKey
from nodus_core.kernel.times import stamp
from nodus_core.resources.environmentimage import COMPLETED, FAILED
from nodus_core.resources.manifest import Manifest
from nodus_core.resources.patch import same

NO_IMAGES = "NoImages"
NO_BUILDS = "NoBuilds"
UNPULLABLE = "ImageUnpullable"
"""Reasons of a failed image."""

_NO_IMAGES = "This deployment has no container images: sandboxes have the machine's own tools. Deploy to AWS to use it."
_NO_BUILDS = (
    "spec.setup is not built by Nodus yet. Build the image yourself, FROM the image that spec.image names, push it to "
    "a public registry, and name that as spec.image without spec.setup."
)


@dataclass(frozen=True)
class EnvironmentImages(Definitions):
    """Use cases of EnvironmentImages. What one stands for is found out when it is made, changed or built again; runs
    and Sandboxes keep the digest that they were made with (NOD-448)."""

    kind: str = KIND
    images: Images = field(kw_only=True)

    def commit(self, obj: Object, manifest: Manifest, promised: Promise | None, *more: Operation) -> Outcome:
        status = self._found(obj.key, manifest.spec)
        return super().commit(replace(obj, status=status), manifest, promised, *more)

    def revise(self, old: Object, manifest: Manifest, *, exact: bool) -> Outcome:
        """One try of a change; another spec stands for another image."""
        if not same(self.shelf.spec(old), manifest.spec):
            old = replace(old, status=self._found(old.key, manifest.spec))
        return super().revise(old, manifest, exact=exact)

    def build(self, place: Place, name: str) -> Outcome:
        """Finds out anew what the image stands for: a tag may have moved. `NotFound`, `Conflict`."""

        def attempt() -> Outcome:
            old = self.shelf.find(place, KIND, name)
            spec = self.shelf.spec(old)
            status = self._found(old.key, spec)
            now = self.shelf.clock.now()
            new = versioned(replace(old, status=status), now)
            self.shelf.journal.objects.replace(old, new, now)
            return Outcome(new, spec)

        return look_again(KIND, name, attempt)

    def _found(self, key: ObjectKey, spec: dict[str, Any]) -> dict[str, Any]:
        """The status: Completed with a digest, or Failed and why. Raises `RetryableError`: a registry is silent."""
        at = {"checkedAt": stamp(self.shelf.clock.now())}
        if not self.images.sources.has_images:
            return {"state": FAILED, "reason": NO_IMAGES, "message": _NO_IMAGES, **at}
        if spec.get("setup"):
            return {"state": FAILED, "reason": NO_BUILDS, "message": _NO_BUILDS, **at}
        try:
            pinned = self.images.pinned(key, str(spec["image"]))
        except Refusal as refusal:
            message = "; ".join(cause.message for cause in refusal.causes) or refusal.message
            return {"state": FAILED, "reason": UNPULLABLE, "message": message, **at}
        return {"state": COMPLETED, "digest": pinned.digest, "reference": pinned.pull, **at}
