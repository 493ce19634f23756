"""What tables showed of an object at last: who watches in rows is told of its end in one, and cannot read it any more."""

from collections.abc import Mapping
from typing import Any

from nodus_core.conversations.conditions import with_conditions
from nodus_core.conversations.shelf import Shelf
from nodus_core.kernel.errors import NodusError
from nodus_core.kernel.objects import Object
from nodus_core.kernel.times import stamp
from nodus_core.resources.kinds import BY_NAME

LONGEST = 200
"""Characters of a cell that are kept."""


def last_cells(shelf: Shelf, obj: Object, status: Mapping[str, Any]) -> dict[str, Any]:
    """The cells of an object that is about to go, by the names of their columns.

    Those of wide tables only are left out: they may quote texts, which go with the object. So is what can no longer
    be read: no object stays because of it.
    """
    try:
        spec = shelf.spec(obj)
    except NodusError:
        spec = {}
    shown = {
        "metadata": {"generation": obj.generation, "creationTimestamp": stamp(obj.created_at)},
        "spec": spec,
        "status": with_conditions(obj, spec, dict(status), shelf.clock.now(), shelf.allowed),
    }
    columns = [column for column in BY_NAME[obj.key.kind].columns if column.priority == 0]
    cells = {column.name: column.cell(shown) for column in columns}
    return {
        name: cell if isinstance(cell, int) else str(cell)[:LONGEST]
        for name, cell in cells.items()
        if cell not in (None, "")
    }
