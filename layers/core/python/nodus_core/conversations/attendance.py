"""A call to the outside that a stop does not wait for: it is made in a thread of its own, while the run's head is looked at."""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

from nodus_core.conversations.session import Session
from nodus_core.kernel.errors import NodusError

FIRST_LOOK_S = 0.5
LAST_LOOK_S = 3.0
"""Seconds between looks for a stop marker, growing: a call of a minute is looked after some twenty times."""

log = logging.getLogger(__name__)

T = TypeVar("T")


def attended(session: Session, call: Callable[[], T], most_s: float | None = None) -> T | None:
    """What a call gives, as a model's reply; None when the run was stopped before it came. Raises what the call raises,
    and `TimeoutError` once it has taken `most_s` seconds.

    A call that was stopped is left to itself: its connection ends at its own time limit, its reply is not heard, and
    what it has cost stays unknown.
    """
    made: Future[T] = Future()
    threading.Thread(target=_make, args=(call, made), name="outside-call", daemon=True).start()
    interval, begun = FIRST_LOOK_S, time.monotonic()
    while not wait([made], timeout=interval).done:
        if _is_stopped(session):
            log.info("run %s was stopped: a call that it has made is not waited for", session.open_run.uid)
            return None
        if most_s is not None and time.monotonic() - begun > most_s:
            raise TimeoutError
        interval = min(interval * 1.5, LAST_LOOK_S)
    return made.result()


def _make(call: Callable[[], T], made: "Future[T]") -> None:
    try:
        made.set_result(call())
    except BaseException as error:  # noqa: BLE001 - whatever it is, the worker raises it
        made.set_exception(error)


def _is_stopped(session: Session) -> bool:
    """Whether the run has its stop marker, or gets it now, at its deadline.

    A journal that does not answer must not end a call that is paid for.
    """
    try:
        run = session.ports.journal.run(session.open_run.uid)
        if run is not None and run.stop is None and session.is_overdue():
            session.expire()
            return True
    except NodusError as error:
        log.warning("run %s was not looked at while a call of it is made: %s", session.open_run.uid, error)
        return False
    return run is not None and run.stop is not None
