"""What the handles to runs, groups and sandboxes have in common: an object's name, and the client of its project."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nodus._client import AnyClient


class Handle:
    """One object by its name; nothing is sent until something is asked of it."""

    def __init__(self, name: str, *, client: AnyClient) -> None:
        self.name = name
        self._client = client

    @property
    def project(self) -> str:
        """The project of the object."""
        return self._client.project

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, project={self.project!r})"
