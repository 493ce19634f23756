"""Objects that the server keeps and does not act on yet say so in their condition ``Ready``."""

from __future__ import annotations

from nodus._conditions import conditions_of
from nodus._kinds import Kind
from nodus._record import Record
from nodus.errors import NotAvailableError

NOT_AVAILABLE_CODE = 422  # as the server refuses what is not available


def require_available(kind: Kind, name: str, thing: Record) -> None:
    """Let an object pass that the server acts on.

    Raises:
        NotAvailableError: it says that nothing acts on it.
    """
    for condition in conditions_of(thing):
        if condition.get("type") == "Ready" and condition.get("reason") == NotAvailableError.default_reason:
            raise NotAvailableError(
                f"{kind.word}/{name}: {condition.get('message') or 'nothing acts on it yet'}",
                code=NOT_AVAILABLE_CODE,
                details={"kind": kind.name, "name": name},
            )
