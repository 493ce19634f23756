"""Lists of objects, page by page, of one project or through several.

Pages go on behind a name, in the order of projects and names, and each shows its objects as they are when it is read. So an
object that is there from the first page to the last is shown once, whatever others create and delete meanwhile; one
that comes or goes in between is shown or not, as its name falls. Watching from the version of any page tells all
that has happened since before the first one was read.
"""

import base64
import binascii
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from nodus_core.access.door import Place
from nodus_core.conversations.reading import Reading, Shown
from nodus_core.conversations.shelf import key_of
from nodus_core.conversations.tenancy import PROJECT
from nodus_core.journal.changes import settled
from nodus_core.kernel.errors import Refusal
from nodus_core.kernel.ids import digest
from nodus_core.kernel.objects import Object
from nodus_core.resources.fields import is_label, is_name
from nodus_core.resources.kinds import BY_NAME
from nodus_core.resources.selectors import Selection

MOST_REPLY = 2 * 1024 * 1024
"""Bytes of JSON after which a page ends early: a function's reply is bounded, an object's size is not small."""

MOST_SCANNED = 500
"""Objects that one page of a filtered list looks at."""

_CHUNK = 16


@dataclass(frozen=True)
class PageOf:
    """Items as they are shown; `after` is the token to go on with; `version` is a position to watch from."""

    items: list[Shown]
    after: str | None
    version: str = "0"


@dataclass(frozen=True)
class Listed:
    """Where a list goes on: behind which name of which project, in which list, and the position at which it was
    begun. Without a name it is before the project's first object."""

    project: str
    name: str
    of: str
    version: int

    def to_token(self) -> str:
        return token(json.dumps([self.project, self.name, self.of, self.version]))

    @classmethod
    def from_token(cls, text: str, of: str) -> "Listed":
        """Raises `Refusal` `BadRequest` for what is no token, or one that another list gave."""
        try:
            told = json.loads(untoken(text))
        except (ValueError, RecursionError):
            told = None
        match told:
            case [str(project), str(name), str(given), int(version)] if version >= 0 and (
                (is_name(name) or not name) and (is_label(project) or not project)
            ):
                if given != of:
                    message = "continue is a token of another list; send the parameters of its first page"
                    raise Refusal("BadRequest", message)
                return cls(project, name, of, version)
            case _:
                raise no_token()


@dataclass(frozen=True)
class Listing:
    """Lists of one journal."""

    reading: Reading

    def page(self, place: Place, kind: str, limit: int, after: str | None, selection: Selection) -> PageOf:
        """Objects in the order of their names, at most `limit`, fewer when they are large or do not match; of a kind
        of projects those of one after the other where `place` names none (`Door.enter_projects`).

        Raises `Refusal` `BadRequest` for a token that this list has not given.
        """
        of = digest(json.dumps([place.org, place.project, kind, selection.text]))[:16]
        if after is None:
            here = Listed("", "", of, settled(self.reading.shelf.clock.now()))
        else:
            here = Listed.from_token(after, of)
        found: list[Shown] = []
        size, last = 0, here
        for scanned, (position, shown) in enumerate(self._scan(place, kind, here, selection.fields.name())):
            fits = len(found) < limit and scanned < MOST_SCANNED
            if fits and shown is not None and selection.matches(shown):
                size += len(json.dumps(shown, default=str))
                fits = not found or size <= MOST_REPLY
                if fits:
                    found.append(shown)
            if not fits:
                return PageOf(found, last.to_token(), str(here.version))
            last = position
        return PageOf(found, None, str(here.version))

    def _scan(
        self, place: Place, kind: str, here: Listed, name: str | None
    ) -> Iterator[tuple[Listed, Shown | None]]:
        """What is behind a position, with its own; a project counts as it begins, so that empty ones are not free.

        `name`: only the object of that name is meant.
        """
        for project in self._projects(place, kind, here.project):
            within = replace(place, project=project)
            start = here if project == here.project else Listed(project, "", here.of, here.version)
            yield start, None
            objects = (
                self._behind(within, kind, start.name) if name is None else self._one(within, kind, name)
            )
            for shown in objects:
                yield replace(start, name=shown["metadata"]["name"]), shown

    def _projects(self, place: Place, kind: str, first: str) -> Iterator[str]:
        """The projects that are listed, from one on."""
        if place.project or not BY_NAME[kind].namespaced:
            yield place.project
        elif not place.grant.is_of_all_projects:
            yield from sorted(project for project in set(place.grant.projects) if project >= first)
        else:
            if first:
                yield first
            for group in self._groups(place, PROJECT, first):
                yield from (obj.key.name for obj in group)

    def _one(self, place: Place, kind: str, name: str) -> Sequence[Shown]:
        """The one object of a project that a selector may mean."""
        obj = self.reading.shelf.journal.object(key_of(place, kind, name)) if is_name(name) else None
        return self.reading.all_shown([obj] if obj else [])

    def _behind(self, place: Place, kind: str, after: str) -> Iterator[Shown]:
        for group in self._groups(place, kind, after):
            yield from self.reading.all_shown(group)

    def _groups(self, place: Place, kind: str, after: str) -> Iterator[list[Object]]:
        """Objects behind a name, read in small groups: what is not needed is not read."""
        position: str | None = after or None
        while True:
            objects, position = self.reading.shelf.journal.objects_of(
                place.org, place.project, kind, after=position, limit=_CHUNK
            )
            yield objects
            if position is None:
                return


def token(position: str) -> str:
    """A `continue` token: what it holds is nobody's business."""
    return base64.urlsafe_b64encode(position.encode()).decode().rstrip("=")


def untoken(text: str) -> str:
    """The position in a `continue` token. Raises `Refusal` `BadRequest`."""
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        raise no_token() from None


def no_token() -> Refusal:
    return Refusal("BadRequest", "continue is not a token that a list gave")
