"""Kicks that are lost, late and doubled, and the workers that are at work.

A kick is a batch of stream records, an event of a rule, a pass of a timer, or the start of an execution. An execution
may also call its function twice at the same time: Lambda promises to call at least once.
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from localstack.faults.weather import Weather

LATE_S = (1.0, 25.0)
FATES = ("lost", "late", "doubled")
NOTHING: dict[str, Any] = {"body": {}, "log": ""}

Call = Callable[[dict[str, Any], Any, str], dict[str, Any]]


@dataclass(frozen=True)
class Busy:
    """A worker that serves a call: `about` is the line, for a call of an execution."""

    pid: int
    function: str
    about: str
    since: float


class Kicks:
    """Stands between the emulator and the functions that it calls."""

    def __init__(self, weather: Weather) -> None:
        self._weather = weather
        self._busy: dict[int, Busy] = {}

    def around(self, call: Call) -> Call:
        """`call` with kicks that go wrong."""

        def disturbed(func: dict[str, Any], event: Any, request_id: str) -> dict[str, Any]:
            name, about = kick_of(event)
            fate = (
                self._weather.fault(name, ("doubled",) if name == "call" else FATES, about) if name else None
            )
            if fate in ("late", "doubled"):
                delay = self._weather.seconds(*LATE_S) if fate == "late" or name != "call" else 0.0
                _later(delay, lambda: call(func, event, f"{request_id[:-4]}0002"))
            return NOTHING if fate in ("lost", "late") else call(func, event, request_id)

        return disturbed

    def watching(self, exchange: Callable[..., Any]) -> Callable[..., Any]:
        """A worker's `_exchange` that notes who is at work."""

        def watched(worker: Any, process: Any, message: dict[str, Any], timeout_s: float) -> Any:
            about = kick_of(message["event"])[1]
            self._busy[process.pid] = Busy(process.pid, worker.func_name, about, time.time())
            try:
                return exchange(worker, process, message, timeout_s)
            finally:
                self._busy.pop(process.pid, None)

        return watched

    def busy(self) -> list[dict[str, Any]]:
        """The workers that serve a call now."""
        return [asdict(each) for each in list(self._busy.values())]


def kick_of(event: Any) -> tuple[str, str]:
    """What kind of a kick an event is, and what it is about; an empty name for what is none."""
    if not isinstance(event, dict):
        return "", ""
    if "line" in event and "generation" in event:
        return "call", str(event["line"])
    records = event.get("Records")
    if records:
        return "stream", f"{len(records)} records"
    if event.get("detail-type") == "Scheduled Event":
        return "timer", "sweep"
    if "detail" in event:
        return "event", str(event.get("source", ""))
    return "", str(event.get("rawPath", ""))


def _later(delay_s: float, action: Callable[[], object]) -> None:
    context = contextvars.copy_context()  # the emulator keeps account and region there

    def work() -> None:
        time.sleep(delay_s)
        context.run(action)

    threading.Thread(target=work, name="late kick", daemon=True).start()
