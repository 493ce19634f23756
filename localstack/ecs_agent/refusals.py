"""Telling the link that a sandbox will not start (protocols §3)."""

from __future__ import annotations

import json
import logging
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from urllib.parse import quote

ATTEMPTS = 4
_TIMEOUT_S = 10.0
_FIRST_PAUSE_S = 0.25
_logger = logging.getLogger(__name__)


def tell_refused(variables: Mapping[str, str], reason: str, remedy: str) -> bool:
    """`POST …/sandboxes/{ID}/refused`; True when the link took it.

    It is tried again for some seconds, then left: the sandbox's start has a deadline of its own there.

    Args:
        variables: of the task.
        reason: why.
        remedy: what a person can do.
    """
    base = variables.get("NODUS_LINK_HTTP", "").rstrip("/")
    sandbox = variables.get("NODUS_SANDBOX_ID", "")
    if not base.startswith(("http://", "https://")):
        _logger.error("sandbox %s: its task names no link to tell the refusal to", sandbox)
        return False
    body = {"enrolCode": variables.get("NODUS_ENROL_CODE"), "reason": reason, "remedy": remedy}
    request = urllib.request.Request(  # noqa: S310 - http and https only, see above
        f"{base}/sandboxes/{quote(sandbox, safe='')}/refused",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
        method="POST",
    )
    pause = _FIRST_PAUSE_S
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(pause)
            pause *= 3
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S):  # noqa: S310
                return True
        except urllib.error.HTTPError as error:
            _logger.error("sandbox %s: the link answers %s to its refusal", sandbox, error.code)
            if error.code < 500 and error.code != 429:
                return False
        except OSError as error:
            _logger.error("sandbox %s: the link cannot be told of its refusal: %s", sandbox, error)
    return False
