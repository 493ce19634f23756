"""Commits on values in the vault that no object names: they are noted before they are stored, and as they go.

expect ──► (the vault keeps them) ──► create-object, which takes the note away
   └─ the caller dies ────────────┐
remove-object, which leaves a note ┴─► due ──► doom ──► (the vault removes them) ──► forget
"""

from datetime import datetime, timedelta

from nodus_core.journal.keys import loose_value_key
from nodus_core.journal.lines import due
from nodus_core.journal.store import Absent, Delete, Equals, Operation, Present, Put, Update, both
from nodus_core.journal.writer import Writer, stored
from nodus_core.kernel.objects import LooseValue, Object

PATIENCE = timedelta(minutes=5)
"""Time that a call has to make an object of its values: longer than any invocation lives."""


class LooseValues:
    """Commits of notes. Each may be repeated."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def expect(self, value: LooseValue, now: datetime) -> None:
        """Notes values that are about to be stored. Condition: the uid is new. Raises `ConditionFailed`."""
        self._writer.commit("expect-value", _note(value, now + PATIENCE))

    def doom(self, value: LooseValue, now: datetime) -> None:
        """Nobody can make an object of these any more. Condition: the note is there. Raises `ConditionFailed`."""
        key = loose_value_key(value.uid)
        again = due(key.pk, now + PATIENCE)  # should whoever removes them now not come to the end
        self._writer.commit("doom-value", Update(key, when=Present(), assign={"doomed": True, **again}))

    def forget(self, value: LooseValue) -> None:
        """They are out of the vault."""
        self._writer.commit("forget-value", Delete(loose_value_key(value.uid)))


def loose(obj: Object, *, doomed: bool = False) -> LooseValue:
    """The note of an object's values."""
    return LooseValue(obj.key.org, obj.key.project, obj.uid, doomed)


def taken(obj: Object) -> Operation:
    """Part of the commit that creates the object. Condition: its values are noted and not doomed."""
    return Delete(loose_value_key(obj.uid), when=both(Present(), Equals("doomed", False)))


def left(obj: Object, now: datetime) -> Operation:
    """Part of the commit that removes the object: its values are to follow."""
    return _note(loose(obj, doomed=True), now)


def _note(value: LooseValue, at: datetime) -> Put:
    key = loose_value_key(value.uid)
    return Put(stored(key, value, **due(key.pk, at)), when=Absent())
