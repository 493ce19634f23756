"""A store in memory that counts what DynamoDB and S3 would bill, by who asked and in which round."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from nodus_core.journal.payloads import Scope
from nodus_core.journal.store import Delete, Key, Page, Put, Row, Transaction, Update
from nodus_core.kernel.text import Stored, Text
from nodus_core.testing.memory_payloads import MemoryPayloads
from nodus_core.testing.memory_store import MemoryStore

from tests.bench import units
from tests.bench.recording import Recorder

Bill = Counter[str]
"""What was used, by name: requests, units, bytes, stream records."""


class Meter:
    """Bills by sender and round, both as a `Recorder` knows them."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.bills: dict[tuple[str, int], Bill] = defaultdict(Counter)

    def add(self, **used: int) -> None:
        self.bills[self._recorder.sender, self._recorder.round].update(used)

    def of(self, sender: str, rounds: Sequence[int]) -> Bill:
        """What the sender used in these rounds together."""
        return sum((self.bills[sender, number] for number in rounds), Counter())


class MeteredStore(MemoryStore):
    """The double, whose every call is billed as `aws/dynamodb_store.py` would make it."""

    def __init__(self, meter: Meter) -> None:
        super().__init__()
        self._meter = meter

    def commit(self, transaction: Transaction, token: str) -> None:
        keys = [operation.key for operation in transaction.operations]
        before = super().get(keys)
        super().commit(transaction, token)
        after = super().get(keys)
        factor = 2 if _is_transaction(transaction) else 1
        pairs = list(zip(before, after, strict=True))
        self._meter.add(
            write_requests=1,
            rows_written=len(keys),
            write_units=factor * sum(units.write_units(*pair) + units.index_units(*pair) for pair in pairs),
            bytes_written=sum(units.size(row) for row in after),
            stream_records=sum(old != new for old, new in pairs),
            reactor_records=sum(old != new and new is not None and "outbox" in new for old, new in pairs),
        )

    def get(self, keys: Sequence[Key]) -> list[Row | None]:
        rows = super().get(keys)
        self._meter.add(read_requests=1, read_units=sum(units.read_units(units.size(row)) for row in rows))
        return rows

    def query(
        self,
        pk: str,
        prefix: str = "",
        *,
        after: str | None = None,
        limit: int = 1000,
        newest_first: bool = False,
    ) -> Page:
        page = super().query(pk, prefix, after=after, limit=limit, newest_first=newest_first)
        used = units.read_units(sum(units.size(row) for row in page.rows))
        self._meter.add(read_requests=1, read_units=used)
        return page


class MeteredPayloads(MemoryPayloads):
    """The double, which counts objects written and read."""

    def __init__(self, meter: Meter) -> None:
        super().__init__()
        self._meter = meter

    def put(self, scope: Scope, text: str, *, head: bool = True) -> Text:
        made = super().put(scope, text, head=head)
        if isinstance(made, Stored):
            self._meter.add(payload_puts=1)
        return made

    def get(self, scope: Scope, text: Text) -> str:
        if isinstance(text, Stored):
            self._meter.add(payload_gets=1)
        return super().get(scope, text)


def _is_transaction(transaction: Transaction) -> bool:
    """Whether the store sends it as TransactWriteItems (`aws/dynamodb_requests.py`)."""
    match transaction.operations:
        case (Put(),) | (Delete(when=None),):
            return False
        case (Update(add=added),):
            return bool(added)
        case _:
            return True
