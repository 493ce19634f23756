"""A model call that a stop does not wait for: it is made in a thread of its own, while the run's head is looked at."""

import logging
import threading
from concurrent.futures import Future, wait

from nodus_core.conversations.session import Session
from nodus_core.inference.exchange import ModelReply, ModelRequest
from nodus_core.kernel.errors import NodusError

FIRST_LOOK_S = 0.5
LAST_LOOK_S = 3.0
"""Seconds between looks for a stop marker, growing: a call of a minute is looked after some twenty times."""

log = logging.getLogger(__name__)


def attended(session: Session, request: ModelRequest, key: str | None = None) -> ModelReply | None:
    """The reply to a call, made with the user's own `key` if there is one; None when the run was stopped before it came. Raises what the call raises.

    A call that was stopped is left to itself: its connection ends at its own time limit, its reply is not heard, and
    what it has cost stays unknown.
    """
    call: Future[ModelReply] = Future()
    threading.Thread(target=_make, args=(session, request, key, call), name="model-call", daemon=True).start()
    interval = FIRST_LOOK_S
    while not wait([call], timeout=interval).done:
        if _is_stopped(session):
            log.info("run %s was stopped: its model call is not waited for", session.open_run.uid)
            return None
        interval = min(interval * 1.5, LAST_LOOK_S)
    return call.result()


def _make(session: Session, request: ModelRequest, key: str | None, call: Future[ModelReply]) -> None:
    try:
        call.set_result(session.ports.models.call(request, key))
    except BaseException as error:  # noqa: BLE001 - whatever it is, the worker raises it
        call.set_exception(error)


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
        log.warning("run %s was not looked at while its model call is made: %s", session.open_run.uid, error)
        return False
    return run is not None and run.stop is not None
