"""The system's clock and its source of ids."""

import time
import uuid
from datetime import UTC, datetime


class SystemClock:
    """The machine's time, in UTC, to the millisecond, as it is stored."""

    def now(self) -> datetime:
        moment = datetime.now(UTC)
        return moment.replace(microsecond=moment.microsecond // 1000 * 1000)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class FreshIds:
    """122 random bits behind a prefix."""

    def fresh(self, prefix: str) -> str:
        return f"{prefix}-{uuid.uuid4().hex}"
