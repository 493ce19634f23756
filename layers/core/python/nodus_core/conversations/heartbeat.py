"""Keeps a worker's lease alive while it works, so that nobody takes a line whose worker only waits."""

import logging
import threading
from types import TracebackType

from nodus_core.journal.fence import Fence
from nodus_core.journal.lines import Lines
from nodus_core.journal.ports import Clock
from nodus_core.kernel.errors import ConditionFailed, NodusError

PERIOD_S = 10.0
"""Seconds between renewals: a third of the lease, so that two may fail."""

log = logging.getLogger(__name__)


class Heartbeat:
    """Renews the lease in a thread while the `with` block runs; stops by itself once fenced."""

    def __init__(self, lines: Lines, fence: Fence, clock: Clock) -> None:
        self._lines = lines
        self._fence = fence
        self._clock = clock
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def __enter__(self) -> "Heartbeat":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _beat(self) -> None:
        while not self._over.wait(PERIOD_S):
            try:
                self._lines.renew(self._fence, self._clock.now())
            except ConditionFailed:
                log.info("line %s is another's now; no more renewals", self._fence.conversation)
                return
            except NodusError as error:
                log.warning("lease of line %s was not renewed: %s", self._fence.conversation, error)
