"""References to images as OCI registries understand them, read as container engines read them."""

import hashlib
import re
from dataclasses import dataclass

from nodus_core.kernel.objects import ObjectKey

DOCKER_HUB = "docker.io"
_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_PLAIN = re.compile(r"[a-z0-9]+(?:[._-][a-z0-9]+)*")
LONGEST_PART = 63
_REPOSITORY = re.compile(rf"{_PART}(?:/{_PART})*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_HOST = re.compile(r"[A-Za-z0-9.-]+(?::[0-9]{1,5})?")


class BadReference(Exception):
    """A text that names no image; the message says why."""


@dataclass(frozen=True)
class Reference:
    """Where an image stands: registry, repository, and a tag or a digest."""

    host: str
    repository: str
    tag: str | None = None
    digest: str | None = None

    @property
    def version(self) -> str:
        """The tag or the digest, for the registry's API."""
        return self.digest or self.tag or "latest"

    def at(self, digest: str) -> str:
        """The same image by its digest: what this names never changes (NOD-448)."""
        return f"{self.host}/{self.repository}@{digest}"


def repository_of(image: ObjectKey, uid: str) -> str:
    """Where what is built for an EnvironmentImage stands, below the deployment's own place: by organization, project,
    uid. A name that no repository may have is told by its hash."""
    return "/".join((_part(image.org), _part(image.project), uid))


def _part(name: str) -> str:
    if len(name) <= LONGEST_PART and _PLAIN.fullmatch(name):
        return name
    return f"x{hashlib.sha256(name.encode()).hexdigest()[:32]}"


def is_digest(text: str) -> bool:
    return _DIGEST.fullmatch(text) is not None


def read_reference(text: str) -> Reference:
    """`[HOST/]REPOSITORY[:TAG][@DIGEST]`; without a host it is Docker Hub's. Raises `BadReference`."""
    named, at, digest = text.partition("@")
    if at and not is_digest(digest):
        raise BadReference("must end in @sha256: and 64 hexadecimal digits where it names a digest")
    first, slash, rest = named.partition("/")
    has_host = bool(slash) and ("." in first or ":" in first)
    host, path = (first, rest) if has_host else (DOCKER_HUB, named)
    repository, colon, tag = path.partition(":")
    if host == DOCKER_HUB and "/" not in repository:
        repository = f"library/{repository}"
    if _HOST.fullmatch(host) is None or _REPOSITORY.fullmatch(repository) is None:
        raise BadReference("must be a registry's image such as public.ecr.aws/docker/library/python:3.12")
    if colon and _TAG.fullmatch(tag) is None:
        raise BadReference("must have a tag of letters, digits, _ . and - (at most 128 characters)")
    return Reference(host.lower(), repository, tag or None, digest or None)
