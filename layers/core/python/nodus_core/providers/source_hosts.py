"""How hosts of sources are spoken to: over connections to judged addresses, for so many bytes, and what a refusal means.

Imports httpx2: import this module only when a source is about to be copied.
"""

from http import HTTPStatus

import httpx2

from nodus_core.conversations.sources import FETCH_TIME_S, SourceRefused, SourceUnavailable
from nodus_core.providers.credentials import Credentials
from nodus_core.providers.http import http_client
from nodus_core.providers.posting import Timeouts
from nodus_core.providers.public_network import PublicTransport

TIMEOUTS = Timeouts(connect=10, reply=FETCH_TIME_S)

UNREADABLE = "there is none of that name, or the connection may not read it"


def source_client(credentials: Credentials, field: str, largest: int) -> httpx2.Client:
    """A client that follows no redirects. `field` is what people have written the address in; `largest`: bytes."""
    network = credentials.own_keys
    transport = PublicTransport(network.private_hosts, network.certificates, field=field)
    return http_client(httpx2.Client, None, TIMEOUTS, transport, largest=largest)


def judge(answer: httpx2.Response, what: str, unreadable: str = UNREADABLE) -> None:
    """Raises what a status other than 200 means for the copy of `what`."""
    status = answer.status_code
    if status == HTTPStatus.OK:
        return
    wait = answer.headers.get("retry-after", "")
    seconds = float(wait) if wait.isdecimal() else None
    if (
        status == HTTPStatus.TOO_MANY_REQUESTS
        or status >= HTTPStatus.INTERNAL_SERVER_ERROR
        or seconds is not None
    ):
        raise SourceUnavailable(f"the host of {what} answers {status}", seconds)
    if answer.has_redirect_location:
        raise SourceRefused(f"{what} has moved: name it as its host calls it now")
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND, HTTPStatus.GONE):
        raise SourceRefused(f"its host answers {status} for {what}: {unreadable}")
    raise SourceRefused(f"the host of {what} answers {status}")
