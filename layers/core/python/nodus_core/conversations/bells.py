"""The bell of a sandbox: it makes its daemon look sooner, and nothing depends on it."""

import logging

from nodus_core.journal.ports import Bell
from nodus_core.kernel.errors import NodusError
from nodus_core.kernel.sandboxes import Sandbox

log = logging.getLogger(__name__)


def ring(bell: Bell, sandbox: Sandbox) -> None:
    """Asks the daemon to look now; a bell that is not heard only costs time."""
    if sandbox.connection is not None:
        try:
            bell.ring(sandbox.connection)
        except NodusError as error:
            log.warning("the bell of sandbox %s was not rung: %s", sandbox.id, error)
