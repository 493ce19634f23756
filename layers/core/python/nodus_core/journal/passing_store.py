"""A store before another one: reads are passed on, and whoever inherits says what becomes of commits."""

from collections.abc import Iterable, Sequence

from nodus_core.journal.store import Key, Page, Row, Store


class PassingStore:
    """The reads of `Store`, as `real` answers them."""

    def __init__(self, real: Store) -> None:
        self.real = real

    def get(self, keys: Sequence[Key]) -> list[Row | None]:
        return self.real.get(keys)

    def query(
        self,
        pk: str,
        prefix: str = "",
        *,
        after: str | None = None,
        limit: int = 1000,
        newest_first: bool = False,
    ) -> Page:
        return self.real.query(pk, prefix, after=after, limit=limit, newest_first=newest_first)

    def due(self, shard: str, until: str, limit: int | None = None) -> Iterable[Key]:
        return self.real.due(shard, until, limit)
