"""One HTTP request to a service of the sandbox: one line of JSON and the body on standard input, one line back.

The body of the answer goes to the descriptor `fd`, as it is: neither its encoding nor anything in it is looked at.
"""

import errno
import http.client
import json
import os
import socket
import sys

LOOPBACK = ("127.0.0.1", "::1")
"""Where services listen: many that are told `localhost` listen at the second one alone."""

CHUNK_BYTES = 256 * 1024
MOST_HEADER_BYTES = 32 * 1024
"""Of an answer: the rest of what an ask may answer is for its body."""

_NO_NETWORK = frozenset({errno.EAFNOSUPPORT, errno.EPERM, errno.EACCES, errno.ENOSYS})


class RefusedError(Exception):
    """There is no answer to pass on; `reason` is one word for programs."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def handle(request: dict, body: bytes) -> dict:
    """Makes the request; whatever keeps an answer from coming becomes an answer, too."""
    try:
        return {"fields": _answer(request, body)}
    except RefusedError as error:
        return {"refused": error.reason, "message": str(error)}
    except (http.client.HTTPException, OSError, ValueError) as error:
        return {"refused": "no_http", "message": f"{type(error).__name__}: {error}"[:300]}


def _answer(request: dict, body: bytes) -> dict:
    with _connected(request["port"]) as reached:
        connection = http.client.HTTPConnection("127.0.0.1", request["port"])
        connection.sock = reached
        connection.putrequest(request["method"], request["target"], skip_host=True, skip_accept_encoding=True)
        for name, value in request["headers"]:
            connection.putheader(name, value)
        connection.endheaders(body or None)
        with connection.getresponse() as response:
            headers = _headers(response)
            size = _copied(response, request["fd"], request["most"])
            return {"status": response.status, "headers": headers, "size": size}


def _connected(port: int) -> socket.socket:
    """A connection to whatever listens on the port. Raises `RefusedError`."""
    trouble: OSError | None = None
    for address in LOOPBACK:
        try:
            return socket.create_connection((address, port))
        except OSError as error:
            trouble = trouble or error
    if trouble is not None and trouble.errno in _NO_NETWORK:
        raise RefusedError("no_network", f"commands of this sandbox have no network: {trouble.strerror}.")
    raise RefusedError("unreachable", f"nothing answers at port {port}: {trouble}.")


def _headers(response: http.client.HTTPResponse) -> list[tuple[str, str]]:
    """Its headers. Raises `RefusedError` where there are too many, or its status is that of no whole answer."""
    headers = response.getheaders()
    if sum(len(name) + len(value) for name, value in headers) > MOST_HEADER_BYTES:
        raise RefusedError("long_headers", f"the answer has more than {MOST_HEADER_BYTES} bytes of headers.")
    if not 200 <= response.status <= 599:
        raise RefusedError("no_http", f"the answer has the status {response.status}.")
    return headers


def _copied(response: http.client.HTTPResponse, target: int, most: int) -> int:
    """Copies the body; returns its bytes. Raises `RefusedError` where it has more than `most`, or is cut short."""
    size = 0
    while chunk := response.read(CHUNK_BYTES):
        size += len(chunk)
        if size > most:
            raise RefusedError("too_large", f"the answer has more than {most} bytes.")
        view = memoryview(chunk)
        while view:
            view = view[os.write(target, view) :]
    if response.length:
        raise RefusedError("no_http", f"the answer ended {response.length} bytes too early.")
    return size


def main() -> None:
    """Reads the request, answers it."""
    line, _, body = sys.stdin.buffer.read().partition(b"\n")
    sys.stdout.buffer.write(json.dumps(handle(json.loads(line), body)).encode() + b"\n")
    sys.stdout.buffer.flush()
