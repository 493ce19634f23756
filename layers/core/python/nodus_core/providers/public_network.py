"""Connections to addresses that users name: to public ones only, judged and connected to in one step (FLD-13).

A name is resolved once; every address that it has must be public, and the connection goes to one of those that
were judged. TLS still asks for the name, so a name that is somebody else's a moment later gains nothing.

Imports httpcore2 and httpx2: import this module only when a call is about to be made.
"""

import socket
import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Any

import httpcore2
import httpx2

from nodus_core.providers.posting import NeverSendable
from nodus_core.resources.addresses import is_public

Resolve = Callable[[str, int], Sequence[str]]
"""Host name and port to addresses, as texts. Raises OSError."""

MOST_ADDRESSES = 4
"""Addresses of one name that a call tries."""

SocketOption = Any


class ForbiddenAddress(NeverSendable, httpx2.ConnectError):
    """The base address leads to an address that is not public. The message tells nothing about what it is."""


class WrongCertificate(NeverSendable, httpx2.ConnectError):
    """Whoever answers cannot prove to be the host of the base address."""


def resolve(host: str, port: int) -> Sequence[str]:
    """The addresses that the system's resolver gives."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class PublicTransport(httpx2.BaseTransport):
    """Requests over connections that are opened for one request each, without proxies and without redirects.

    `private` are hosts that the operator has placed by hand, name to address; `certificates` are texts (PEM) that
    are trusted beside the public authorities. `field` is what people have written the address in, for messages.
    """

    def __init__(
        self,
        private: Mapping[str, str] | None = None,
        certificates: str | None = None,
        resolver: Resolve = resolve,
        field: str = "spec.model.baseURL",
    ) -> None:
        self._field = field
        context = httpx2.create_ssl_context(trust_env=False)
        if certificates:
            context.load_verify_locations(cadata=certificates)
        self._pool = httpcore2.ConnectionPool(
            ssl_context=context,
            max_keepalive_connections=0,  # every request is judged anew
            network_backend=_PublicNetwork(private or {}, resolver, field),
        )

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.url.scheme != "https":
            raise ForbiddenAddress(f"{self._field} must be an https address")
        url = httpcore2.URL(
            scheme=request.url.raw_scheme,
            host=request.url.raw_host,
            port=request.url.port,
            target=request.url.raw_path,
        )
        sent = httpcore2.Request(
            request.method,
            url,
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        with _told(self._field):
            answer = self._pool.handle_request(sent)
        return httpx2.Response(answer.status, headers=answer.headers, stream=_Body(answer, self._field))

    def close(self) -> None:
        self._pool.close()


@contextmanager
def _told(field: str) -> Iterator[None]:
    """Raises the errors of the network as those that HTTP clients know: of the same name, in httpx2."""
    try:
        yield
    except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.TimeoutException) as error:
        # The pool raises its errors without their cause; the context stays.
        if isinstance(error.__context__, ssl.SSLCertVerificationError):
            why = error.__context__.verify_message
            raise WrongCertificate(f"the certificate of {field} is not valid: {why}") from error
        known: type[httpx2.HTTPError] = getattr(httpx2, type(error).__name__)
        raise known(str(error)) from error


class _Body(httpx2.SyncByteStream):
    def __init__(self, answer: httpcore2.Response, field: str) -> None:
        self._answer = answer
        self._field = field

    def __iter__(self) -> Iterator[bytes]:
        with _told(self._field):
            yield from self._answer.iter_stream()

    def close(self) -> None:
        self._answer.close()


class _PublicNetwork(httpcore2.NetworkBackend):
    """Opens connections to judged addresses."""

    def __init__(self, private: Mapping[str, str], resolver: Resolve, field: str) -> None:
        self._field = field
        self._private = {host.lower(): address for host, address in private.items()}
        self._resolve = resolver
        self._network = httpcore2.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[SocketOption] | None = None,
    ) -> httpcore2.NetworkStream:
        failure: Exception = httpcore2.ConnectError("the host has no address")
        for address in self._addresses(host, port)[:MOST_ADDRESSES]:
            try:
                return self._network.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        raise failure

    def _addresses(self, host: str, port: int) -> Sequence[str]:
        placed = self._private.get(host.lower())
        if placed is not None:
            return [placed]
        try:
            found = self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise httpcore2.ConnectError("the host name could not be looked up") from error
        for address in found:
            if not is_public(ip_address(address.partition("%")[0])):
                raise ForbiddenAddress(f"{self._field} names a host that has an address which is not public")
        return found
