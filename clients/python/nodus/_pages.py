"""Lists, page by page (NODQ-71)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from nodus._flow import Flow
from nodus._record import Record
from nodus.errors import UnexpectedAnswerError

PAGE_SIZE = 100
LARGEST_PAGE = 500


class Pages:
    """Where in a list one is: after the first page, behind the ``continue`` of the page before.

    Args:
        read: reads the page of a query.
        query: what every page is asked with.
        position: a ``continue`` to begin with; ``None``: the list's beginning.
    """

    def __init__(
        self,
        read: Callable[[dict[str, str]], Flow[Record]],
        query: dict[str, str],
        position: str | None = None,
    ) -> None:
        self._read = read
        self._query = query
        self._position = position
        self._over = False

    def next(self) -> Flow[Record | None]:
        """The next page; ``None`` after the last.

        Raises:
            ExpiredError: the position is too old; begin again.
            UnexpectedAnswerError: what came is no page of a list, or the one before once more.
        """
        if self._over:
            return None
        query = self._query | ({"continue": self._position} if self._position else {})
        page = yield from self._read(query)
        items_of(page)
        before, self._position = self._position, _text(page, "continue")
        if self._position is not None and self._position == before:
            raise UnexpectedAnswerError("the server gives the same page of a list again and again")
        self._over = not self._position
        return page


def items_of(page: Record) -> list[Record]:
    """The objects of a page.

    Raises:
        UnexpectedAnswerError: it is none.
    """
    items = page.to_dict().get("items")
    if not isinstance(items, list):
        raise UnexpectedAnswerError("the answer is no list; is the server's address right?")
    entries = cast("list[Any]", items)
    if not all(isinstance(entry, dict) for entry in entries):
        raise UnexpectedAnswerError("the list in the answer holds something that is no object")
    return [Record(entry) for entry in entries]


def version_of(page: Record) -> str:
    """The position of a list, from which a watch goes on.

    Raises:
        UnexpectedAnswerError: it has none.
    """
    version = _text(page, "resourceVersion")
    if not version:
        raise UnexpectedAnswerError("the list in the answer has no resourceVersion")
    return version


def _text(page: Record, field: str) -> str | None:
    metadata = page.to_dict().get("metadata")
    value = cast("dict[str, Any]", metadata).get(field) if isinstance(metadata, dict) else None
    return value if isinstance(value, str) else None
