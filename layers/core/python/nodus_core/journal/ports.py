"""Small ports that every use case needs: time, fresh ids, crash points."""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """The present moment, in UTC."""
        ...

    def sleep(self, seconds: float) -> None: ...


class Ids(Protocol):
    def fresh(self, prefix: str) -> str:
        """An id that nobody has had before (claimants, uids, write tokens)."""
        ...


class CrashPoints(Protocol):
    def reach(self, point: str) -> None:
        """Called at every named place; kills the process there in a crash test, else does nothing."""
        ...


class NoCrash:
    """Production's crash points: none."""

    def reach(self, point: str) -> None:
        """Nothing happens here."""
