"""Which image a sandbox is made of: a word of a spec becomes a digest, once, at admission (NOD-021, NOD-448, NODQ-82).

    nodus/agent-tools        an image of the deployment's catalogue
    NAME                     an EnvironmentImage of the project, once it is Completed
    HOST/REPOSITORY:TAG      any public OCI image; without HOST Docker Hub's

What was found is pinned with the run or the Sandbox, so that a rebuild, or a tag that moves, changes nothing of it,
also not when its sandbox is replaced or started again.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from nodus_core.access.door import Place
from nodus_core.conversations.shelf import Shelf
from nodus_core.journal.ports import ImageRegistry
from nodus_core.kernel.errors import Cause, Refusal, RetryableError, TerminalError
from nodus_core.kernel.objects import Object, ObjectKey
from nodus_core.resources.defaults import DEFAULT_IMAGE
from nodus_core.resources.environmentimage import COMPLETED
from nodus_core.resources.fields import is_name
from nodus_core.resources.refusals import invalid
from nodus_core.sandboxes.references import BadReference, Reference, read_reference

KIND = "EnvironmentImage"

MACHINE = "machine"
"""In the place of a reference: this deployment has no container images, and binds what its machine has."""

KNOWN_FOR = timedelta(seconds=30)
"""How long what a registry has said of a tag is believed: a batch of runs asks once."""

_MOST_KNOWN = 1000


@dataclass(frozen=True)
class ImageSources:
    """What a deployment makes sandboxes of.

    `catalogue`: name → reference, or `MACHINE`. `own`: the account's registry, under the host that its references
    have; `public`: everybody else's. None: there is none to ask, and the machine's own tools are all there is.
    `builds`: host and path below which the deployment keeps what it builds; None: it builds nothing.
    """

    catalogue: Mapping[str, str] = field(default_factory=lambda: {DEFAULT_IMAGE: MACHINE})
    own: ImageRegistry | None = None
    public: ImageRegistry | None = None
    builds: str | None = None

    @property
    def has_images(self) -> bool:
        """Whether sandboxes are containers here."""
        return MACHINE not in self.catalogue.values()


@dataclass(frozen=True)
class Pinned:
    """An image as it was named, and the reference with its digest. `pull` None: the machine's own tools."""

    image: str
    pull: str | None = None

    @property
    def digest(self) -> str | None:
        return None if self.pull is None else self.pull.partition("@")[2]


@dataclass(frozen=True)
class Images:
    """Use cases of images. `known` is what registries have said lately."""

    shelf: Shelf
    sources: ImageSources = field(default_factory=ImageSources)
    known: dict[str, tuple[str, datetime]] = field(default_factory=dict[str, tuple[str, datetime]])

    def pinned(self, of: ObjectKey, image: str | None, path: str = "spec.image") -> Pinned:
        """What the sandboxes of an object are made of, from now on.

        `path` is the field of the object that names it. Raises `Refusal`: `Invalid` for an image that does not exist,
        is not completed, or cannot be pulled; `NotAvailable` for another one where there are no images. Raises
        `RetryableError` when a registry does not answer.
        """
        name = image or DEFAULT_IMAGE
        listed = self.sources.catalogue.get(name)
        if listed == MACHINE:
            return Pinned(name)
        if not self.sources.has_images:
            raise _none_here(of, name, path)
        if listed is None and _is_plain(name):
            return Pinned(name, self._of_project(of, name, path))
        try:
            reference = read_reference(listed or name)
            return Pinned(name, reference.at(self._digest(reference, is_listed=listed is not None)))
        except (BadReference, TerminalError) as problem:
            raise _not_accepted(of, path, name, str(problem)) from None

    def choices(self, place: Place) -> list[dict[str, Any]]:
        """What a picker offers: the catalogue's images and the project's completed ones (NOD-446, NOD-447)."""
        own = [
            {"image": obj.key.name, "source": "Project", "digest": obj.status["digest"]}
            for obj in self._of_place(place)
            if obj.status.get("state") == COMPLETED
        ]
        listed = [{"image": name, "source": "Catalog"} for name in sorted(self.sources.catalogue)]
        return listed + own

    def _of_place(self, place: Place) -> Iterator[Object]:
        after: str | None = None
        while True:
            page, after = self.shelf.journal.objects_of(place.org, place.project, KIND, after=after)
            yield from page
            if after is None:
                return

    def _of_project(self, of: ObjectKey, name: str, path: str) -> str:
        found = self.shelf.journal.object(ObjectKey(of.org, of.project, KIND, name))
        if found is None:
            hint = f"there is no EnvironmentImage {name!r} in this project; write Docker Hub's image as library/{name}:TAG"
            raise _not_accepted(of, path, name, hint)
        state, pull = found.status.get("state"), found.status.get("reference")
        if state != COMPLETED or not isinstance(pull, str):
            problem = (
                f"EnvironmentImage {name!r} is {state or 'not built'}; only completed images can be used"
            )
            raise _not_accepted(of, path, name, problem)
        return pull

    def _digest(self, reference: Reference, *, is_listed: bool) -> str:
        """What a registry says of a reference; the account's own is asked for the catalogue's images alone.

        It holds other projects' images, too: those are reached by their EnvironmentImage only.
        """
        is_own = ".dkr.ecr." in reference.host
        if is_own and not is_listed:
            raise TerminalError("is in a private registry; name the project's EnvironmentImage instead")
        registry = self.sources.own if is_own else self.sources.public
        if registry is None:
            raise RetryableError(f"this deployment asks no registry for {reference.host}")
        word, now = f"{reference.host}/{reference.repository}:{reference.version}", self.shelf.clock.now()
        before = self.known.get(word)
        if before is not None and now - before[1] < KNOWN_FOR:
            return before[0]
        found = registry.digest(reference.repository, reference.version, reference.host)
        if len(self.known) >= _MOST_KNOWN:
            self.known.clear()
        self.known[word] = (found, now)
        return found


def _is_plain(name: str) -> bool:
    """Whether it can only be the name of an object: a registry's image has a path, a tag or a digest."""
    return is_name(name) and not {"/", ":", "@"} & set(name)


def _not_accepted(of: ObjectKey, path: str, image: str, problem: str) -> Refusal:
    return invalid(of.kind, of.name, (Cause(path, f"names image {image!r}: {problem}"),))


def _none_here(of: ObjectKey, image: str, path: str) -> Refusal:
    cause = Cause(
        path,
        f"names image {image!r}, and this deployment has no container images: sandboxes here have this machine's own "
        f"tools, which stand for {DEFAULT_IMAGE}. Leave spec.image out, or deploy to AWS (docs/operations.md)",
        "FieldNotAvailable",
    )
    message = f"{of.kind} {of.name!r} cannot be run: {cause.field} {cause.message}"
    return Refusal("NotAvailable", message, causes=(cause,), kind=of.kind, name=of.name)
