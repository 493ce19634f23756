"""Which object a `ref` of a source means."""

import re
from collections.abc import Mapping

from nodus_core.conversations.sources import SourceRefused

_COMMIT = re.compile(r"[0-9a-f]{40}", re.IGNORECASE)
_SHORT = re.compile(r"[0-9a-f]{4,39}", re.IGNORECASE)


def prefixes(ref: str | None) -> list[bytes]:
    """The names that a server need tell of, so that one with a hundred thousand branches tells a few."""
    if ref is None or _COMMIT.fullmatch(ref):
        return [b"HEAD"]
    return [name.encode() for name in _names(ref)]


def wanted(refs: Mapping[bytes, bytes], ref: str | None, repo: str) -> bytes:
    """The object to ask for: a commit, or a tag's own object. A branch comes before a tag of the same name.

    Raises `SourceRefused` when the repository has nothing of that name.
    """
    if ref is None:
        if b"HEAD" in refs:
            return refs[b"HEAD"]
        raise SourceRefused(f"{repo} has no default branch with a commit: push one, or name a ref")
    if _COMMIT.fullmatch(ref):
        return ref.lower().encode()
    for name in _names(ref):
        if name.encode() in refs:
            return refs[name.encode()]
    hint = "; of a commit write all 40 digits" if _SHORT.fullmatch(ref) else ""
    raise SourceRefused(f"{repo} has no branch and no tag {ref!r}{hint}")


def _names(ref: str) -> tuple[str, ...]:
    if ref.startswith("refs/"):
        return (ref,)
    return (f"refs/heads/{ref}", f"refs/tags/{ref}")
