"""Removing values from the vault that no Secret names: one whose creation or deletion was cut off."""

from dataclasses import dataclass

from nodus_core.journal.journal import Journal
from nodus_core.journal.ports import Clock
from nodus_core.journal.vault import Vault, VaultPlace


@dataclass(frozen=True)
class Reclaim:
    """Brings a note of loose values to its end. May be repeated after a crash at any point."""

    journal: Journal
    vault: Vault
    clock: Clock

    def reclaim(self, uid: str) -> bool:
        """Removes the values behind a note; returns whether there was one.

        Dooming comes first: from then on nobody can make a Secret of them. Raises `ConditionFailed` when somebody
        just has, and `NodusError` when the vault does not answer: the note stays due.
        """
        note = self.journal.loose_value(uid)
        if note is None:
            return False
        self.journal.loose_values.doom(note, self.clock.now())
        self.vault.remove(VaultPlace(note.org, note.project, note.uid))
        self.journal.loose_values.forget(note)
        return True
