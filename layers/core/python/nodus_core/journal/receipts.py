"""Receipts in the same commit as what they promise, kept for a day (FLD-16)."""

from datetime import datetime, timedelta

from nodus_core.journal.keys import receipt_key
from nodus_core.journal.store import Absent, Below, Either, Put
from nodus_core.journal.writer import stored
from nodus_core.kernel.objects import Receipt
from nodus_core.kernel.times import stamp

LIFETIME = timedelta(hours=24)
"""How long a key of a create stands for its first outcome (NODQ-41)."""


def remember(receipt: Receipt, now: datetime) -> Put:
    """The operation that keeps a receipt. Condition: its key is free, or its last use is over a day old."""
    row = stored(receipt_key(receipt.key), receipt, ttl=int((now + LIFETIME).timestamp()))
    return Put(row, when=Either((Absent(), Below("at", stamp(now - LIFETIME)))))


def binds(receipt: Receipt, now: datetime) -> bool:
    """Whether a receipt that was read still counts: the table removes old rows when it finds time."""
    return receipt.at >= now - LIFETIME
