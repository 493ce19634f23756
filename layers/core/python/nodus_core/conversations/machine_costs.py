"""What Sandboxes have cost until now: their machines' time runs on between two projections (NOD-414)."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from nodus_core.conversations.shelf import Shelf
from nodus_core.journal import keys
from nodus_core.journal.codec import from_row
from nodus_core.kernel import machine_status, metering
from nodus_core.kernel.objects import Conversation, Object
from nodus_core.kernel.sandboxes import Sandbox

SANDBOX = "Sandbox"


def with_cost(shelf: Shelf, objects: Sequence[Object]) -> list[dict[str, Any]]:
    """The statuses of Sandboxes with what their time has cost."""
    store, now = shelf.journal.store, shelf.clock.now()
    rows = store.get([keys.conversation_key(obj.uid) for obj in objects]) if objects else []
    heads = [None if row is None else from_row(Conversation, row) for row in rows]
    wanted = [keys.sandbox_key(head.sandbox) for head in heads if head and head.sandbox]
    found = [from_row(Sandbox, row) for row in (store.get(wanted) if wanted else []) if row is not None]
    machines = {machine.conversation: machine for machine in found}
    return [_shown(obj, head, machines.get(obj.uid), now) for obj, head in zip(objects, heads, strict=True)]


def _shown(obj: Object, head: Conversation | None, machine: Sandbox | None, now: datetime) -> dict[str, Any]:
    if head is None:
        return obj.status
    cost = head.compute if machine is None else metering.total(machine, now)
    return machine_status.costing(obj.status, cost)
