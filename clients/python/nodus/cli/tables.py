"""Objects as rows of the server's own tables (`meta.k8s.io/v1` `Table`), in which kubectl asks for them, too."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from nodus._flow import Flow
from nodus._kinds import Kind
from nodus._record import Record
from nodus._resources import Resource
from nodus._transport import Call, Reply, parsed
from nodus.cli.picking import pick
from nodus.errors import UnexpectedAnswerError

if TYPE_CHECKING:
    from nodus._client import AnyClient

ACCEPT = "application/json;as=Table;v=v1;g=meta.k8s.io"
Row = dict[str, Any]
"""An object's metadata, and beside it ``cells`` and the ``columns`` in which they stand."""


class Rows(Resource):
    """The objects of a kind, read as rows.

    Args:
        client: of the project.
        kind: of what.
        whole: whether a row has all of its object, as is needed to sort by it; else the metadata is all that comes.
    """

    def __init__(self, client: AnyClient, kind: Kind, *, whole: bool = False) -> None:
        super().__init__(client, kind)
        self._whole_objects = whole
        self._columns: list[Any] = []
        self._last: dict[tuple[Any, Any], list[Any]] = {}

    def _send(self, call: Call, within: float | None = None) -> Flow[Reply]:
        call.accept = ACCEPT
        if self._whole_objects:
            call.query = {**call.query, "includeObject": "Object"}
        return super()._send(call, within)

    def _record(self, call: Call, within: float | None = None) -> Flow[Record]:
        table = (yield from super()._record(call, within)).to_dict()
        rows = self._rows(table)
        if call.path == self.path():
            self._last.update((_place(row), row["cells"]) for row in rows)
            return Record({"metadata": table.get("metadata"), "items": rows})
        return Record(_only(rows))

    def _window(self, selectors: dict[str, str], position: str, seconds: int) -> Flow[bytes]:
        content = yield from super()._window(selectors, position, seconds)
        return b"\n".join(map(self._event, content.splitlines()))

    def _event(self, text: bytes) -> bytes:
        """An event with a row for its object; what has no table (an error) stays as it is."""
        event = parsed(text)
        if pick(event, "object.kind") != "Table":
            return text
        word, row = event["type"], _only(self._rows(event["object"]))
        before = self._last.pop(_place(row), row["cells"])
        if word == "DELETED":
            # Of what is gone the server does not keep the cells of wide tables.
            cells = zip(row["cells"], before, strict=True)
            row["cells"] = [known if now is None else now for now, known in cells]
        else:
            self._last[_place(row)] = row["cells"]
        return json.dumps({"type": word, "object": row}).encode()

    def _rows(self, table: Mapping[str, Any]) -> list[Row]:
        """The rows of a table; in an answer to a watch only the first one says which columns there are."""
        if table.get("kind") != "Table":
            raise UnexpectedAnswerError("the server gives no tables; ask for -o yaml or -o name instead")
        self._columns = table.get("columnDefinitions") or self._columns
        return [self._row(each) for each in cast("list[Any]", table.get("rows") or [])]

    def _row(self, given: Any) -> Row:
        thing, cells = pick(given, "object"), pick(given, "cells")
        if not isinstance(thing, dict) or not isinstance(cells, list):
            raise UnexpectedAnswerError("the table in the answer has a row without its cells or its object")
        if len(cast("list[Any]", cells)) != len(self._columns):
            raise UnexpectedAnswerError("the table in the answer has a row that does not fit its columns")
        return {**cast("Row", thing), "cells": cells, "columns": self._columns}


def cells_of(rows: list[Row], *, wide: bool) -> tuple[list[str], list[list[str]]]:
    """The heading and the cells of rows of one kind, of which there is at least one."""
    columns: list[Any] = rows[0]["columns"]
    shown = [index for index, column in enumerate(columns) if wide or not pick(column, "priority")]
    header = [str(pick(columns[index], "name")).upper() for index in shown]
    return header, [[_text(row["cells"][index]) for index in shown] for row in rows]


def _place(row: Row) -> tuple[Any, Any]:
    return pick(row, "metadata.namespace"), pick(row, "metadata.name")


def _text(cell: Any) -> str:
    return "" if cell is None else str(cell)


def _only(rows: list[Row]) -> Row:
    if len(rows) != 1:
        raise UnexpectedAnswerError(f"the table in the answer has {len(rows)} rows for one object")
    return rows[0]
