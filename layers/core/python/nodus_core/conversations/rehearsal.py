"""Writes that are tried and not made (`dryRun=All`): the use cases run over ports that keep nothing.

What is read is real, so every check is made; what would be written, started or removed goes nowhere. A condition
that only a commit would check, because of a race, is not seen: nothing is promised by a rehearsal.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import BinaryIO

from nodus_core.conversations.kicks import Kicks
from nodus_core.conversations.shelf import Shelf
from nodus_core.journal.journal import Journal
from nodus_core.journal.passing_store import PassingStore
from nodus_core.journal.payloads import Payloads, Scope
from nodus_core.journal.ports import Ids
from nodus_core.journal.store import Transaction
from nodus_core.journal.vault import VaultPlace
from nodus_core.kernel.ids import digest
from nodus_core.kernel.text import INLINE_LIMIT, Inline, Stored, Text, cut, inline


class RehearsedStore(PassingStore):
    """A store that is read and never written."""

    def commit(self, transaction: Transaction, token: str) -> None:
        """Nothing is written."""


@dataclass(frozen=True)
class RehearsedPayloads:
    """Texts that are kept as long as the rehearsal lasts, before those that are stored."""

    real: Payloads
    put_here: dict[Text, str] = field(default_factory=dict[Text, str])

    def put(self, scope: Scope, text: str, *, head: bool = True) -> Text:
        short = inline(text)
        if short is not None:
            return short
        stored = Stored(digest(text), len(text.encode()), cut(text, INLINE_LIMIT) if head else "")
        self.put_here[stored] = text
        return stored

    def put_file(self, scope: Scope, file: BinaryIO) -> Stored:
        """No call of a person stores a file here."""
        raise NotImplementedError("a rehearsal stores no files")

    def get(self, scope: Scope, text: Text) -> str:
        if isinstance(text, Inline):
            return text.text
        return self.put_here[text] if text in self.put_here else self.real.get(scope, text)

    def get_many(self, scope: Scope, texts: Sequence[Text]) -> list[str]:
        return [self.get(scope, text) for text in texts]

    def with_heads(self, scope: Scope, texts: Sequence[Text]) -> list[Text]:
        return self.real.with_heads(scope, texts)

    def presign(self, scope: Scope, stored: Stored) -> str:
        return self.real.presign(scope, stored)

    def delete_scope(self, scope: Scope) -> None:
        """Nothing is removed."""


class RehearsedVault:
    """A vault that takes values and keeps none."""

    VERSION = "rehearsed"

    def create(self, place: VaultPlace, values: Mapping[str, str]) -> str:
        return self.VERSION

    def replace(self, place: VaultPlace, values: Mapping[str, str]) -> str:
        return self.VERSION

    def read(self, place: VaultPlace, version: str) -> Mapping[str, str]:
        """No write reads values."""
        raise NotImplementedError("a rehearsal reads no values")

    def remove(self, place: VaultPlace) -> None:
        """Nothing is removed."""


class RehearsedTransfers:
    """Contents on their way: no call that moves any is rehearsed."""

    def address_to_put(self, scope: Scope, name: str, size: int) -> str:
        """Nothing can be put there."""
        raise NotImplementedError("a rehearsal moves no content")

    def address_to_get(self, scope: Scope, name: str) -> str:
        """Nothing is there."""
        return self.address_to_put(scope, name, 0)

    def put(self, scope: Scope, name: str, content: bytes) -> None:
        """Nothing is kept."""

    def get(self, scope: Scope, name: str, most: int) -> bytes | None:
        return None

    def size(self, scope: Scope, name: str) -> int | None:
        return None

    def remove(self, scope: Scope, name: str) -> None:
        """Nothing is removed."""


class RehearsedStarts:
    """Executions, schedules and bells: nothing is started, no kick is asked for, nobody hears."""

    def start(self, line: str, generation: int) -> None:
        """Nothing starts."""

    def kick_at(self, line: str, at: datetime) -> None:
        """Nobody kicks."""

    def ring(self, connection: str) -> bool:
        return False


@dataclass(frozen=True)
class Rehearsal:
    """The ports of one rehearsal."""

    shelf: Shelf
    kicks: Kicks
    vault: RehearsedVault
    schedules: RehearsedStarts
    bell: RehearsedStarts
    transfers: RehearsedTransfers

    @classmethod
    def of(cls, shelf: Shelf, ids: Ids) -> "Rehearsal":
        """A rehearsal over what is really stored."""
        journal = Journal(RehearsedStore(shelf.journal.store), ids)
        rehearsed = Shelf(journal, RehearsedPayloads(shelf.payloads), shelf.clock, shelf.allowed)
        starts = RehearsedStarts()
        return cls(
            rehearsed,
            Kicks(journal, starts, shelf.clock),
            RehearsedVault(),
            starts,
            starts,
            RehearsedTransfers(),
        )
