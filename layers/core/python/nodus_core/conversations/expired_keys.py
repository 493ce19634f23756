"""Keys that have expired leave the list some days later: each login makes one."""

from dataclasses import dataclass

from nodus_core.conversations.api_keys import KIND
from nodus_core.conversations.last_cells import last_cells
from nodus_core.conversations.shelf import Shelf
from nodus_core.journal.access import SHOWN_AFTER_EXPIRY, Access, key_gone
from nodus_core.journal.journal import Journal
from nodus_core.journal.payloads import Payloads, Scope
from nodus_core.journal.ports import Clock
from nodus_core.journal.rates import rate_gone
from nodus_core.kernel.objects import ObjectKey


@dataclass(frozen=True)
class ExpiredKeys:
    """Use case of the sweeper."""

    journal: Journal
    payloads: Payloads
    clock: Clock

    def remove(self, token_hash: str) -> bool:
        """Removes a key by the sha256 of its token. Returns whether it was there, and its time had come.

        May be repeated after a crash at any point. Raises `ConditionFailed`, `StoreUnavailable`.
        """
        key, now = Access(self.journal.writer).key(token_hash), self.clock.now()
        if key is None or key.expires_at is None or now < key.expires_at + SHOWN_AFTER_EXPIRY:
            return False
        obj = self.journal.object(ObjectKey(key.org, "", KIND, key.name))
        rows = (key_gone(token_hash), rate_gone(token_hash))
        if obj is None or obj.value is None or obj.value.digest != token_hash:
            self.journal.writer.commit("forget-key", *rows)
            return True
        # Before its texts go; a repetition after a crash finds them gone, and knows less.
        cells = last_cells(Shelf(self.journal, self.payloads, self.clock), obj, obj.status)
        self.payloads.delete_scope(Scope(key.org, obj.uid))
        self.journal.objects.remove(obj, self.clock.now(), *rows, cells=cells)
        return True
