"""Faults that emulators never show and AWS does: conflicts, throttling, broken and lost answers.

`FaultyStore` puts them around any store, where its caller sees them. `FaultyWire` puts them on the network in
front of an emulated DynamoDB, so that the adapter's own retries and its recognition of its own writes are
what is tested.
"""

import http.client
import json
import random
import socket
import threading
import time
from enum import StrEnum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

from nodus_core.journal.passing_store import PassingStore
from nodus_core.journal.store import Store, Transaction
from nodus_core.kernel.errors import StoreUnavailable


class Fault(StrEnum):
    """What goes wrong with one request. After `LOST`, `BROKEN_AFTER` and `GARBLED` it was carried out."""

    CONFLICT = "conflict"
    THROTTLE = "throttle"
    BROKEN = "broken"
    CUT = "cut"
    SLOW = "slow"
    BROKEN_AFTER = "broken_after"
    GARBLED = "garbled"
    LOST = "lost"


CARRIED_OUT = frozenset({Fault.BROKEN_AFTER, Fault.GARBLED, Fault.LOST, Fault.SLOW})
SLOW_S = 0.02


class Faults:
    """Which requests go wrong, and how; safe to share between threads."""

    def __init__(self, *script: Fault | None) -> None:
        """`script` is for the first requests, in order; None lets one pass."""
        self._script = list(script)
        self._random: random.Random | None = None
        self._rate = 0.0
        self._lock = threading.Lock()
        self.injected: list[Fault] = []
        """The faults that happened, in order."""

    def plan(self, *script: Fault | None) -> None:
        """Adds to the script."""
        with self._lock:
            self._script += script

    def roll(self, seed: int, rate: float = 0.3) -> None:
        """Lets each request behind the script fail in some way, with probability `rate`."""
        with self._lock:
            self._random, self._rate = random.Random(seed), rate  # noqa: S311 - a test's dice

    def next(self) -> Fault | None:
        """What happens to the next request."""
        with self._lock:
            fault: Fault | None = None
            if self._script:
                fault = self._script.pop(0)
            elif self._random is not None and self._random.random() < self._rate:
                fault = self._random.choice(list(Fault))
            if fault is not None:
                self.injected.append(fault)
            return fault


class FaultyStore(PassingStore):
    """A store whose commits fail as planned: its caller meets `StoreUnavailable`, applied or not."""

    def __init__(self, store: Store, faults: Faults) -> None:
        super().__init__(store)
        self._faults = faults

    def commit(self, transaction: Transaction, token: str) -> None:
        fault = self._faults.next()
        if fault is None or fault in CARRIED_OUT:
            self.real.commit(transaction, token)
        if fault is not None and fault is not Fault.SLOW:
            raise StoreUnavailable(f"{transaction.name}: {fault} was injected")


class FaultyWire:
    """An HTTP proxy on 127.0.0.1 in front of DynamoDB; use it as a context manager, `address` is its own.

    It passes the Host header on, so the signature of the caller stays right when the caller signed for
    the proxy's address and the emulator takes the Host it is given.
    """

    def __init__(self, upstream: str, faults: Faults) -> None:
        """`upstream` is `HOST:PORT` of the emulator."""
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.upstream = upstream
        self._server.faults = faults
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def address(self) -> str:
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    def __enter__(self) -> "FaultyWire":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64
    upstream: str
    faults: Faults


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    _connection: http.client.HTTPConnection | None = None

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        target = self.headers["X-Amz-Target"].rpartition(".")[2]
        server = cast("_Server", self.server)
        fault = server.faults.next()
        if fault is Fault.CUT:
            self.close_connection = True
        elif fault is not None and fault not in CARRIED_OUT:
            self._answer(*_refusal(fault, target, content))
        else:
            self._pass_on(server.upstream, content, fault)

    def _pass_on(self, upstream: str, content: bytes, fault: Fault | None) -> None:
        status, answer = self._asked(upstream, content)
        match fault:
            case Fault.LOST:
                self.close_connection = True
            case Fault.BROKEN_AFTER:
                self._answer(500, _error("InternalServerError"))
            case Fault.GARBLED:
                self._answer(status, answer, checksum=1)
            case _:
                time.sleep(SLOW_S if fault is Fault.SLOW else 0)
                self._answer(status, answer)

    def _asked(self, upstream: str, content: bytes) -> tuple[int, bytes]:
        if self._connection is None:
            self._connection = http.client.HTTPConnection(upstream)
            self._connection.connect()
            self._connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection.request("POST", "/", content, dict(self.headers.items()))
        answer = self._connection.getresponse()
        return answer.status, answer.read()

    def _answer(self, status: int, content: bytes, checksum: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/x-amz-json-1.0")
        self.send_header("Content-Length", str(len(content)))
        if checksum is not None:
            self.send_header("x-amz-crc32", str(checksum))
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()

    def finish(self) -> None:
        super().finish()
        if self._connection is not None:
            self._connection.close()

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing: the tests count `Faults.injected`."""


def _refusal(fault: Fault, target: str, content: bytes) -> tuple[int, bytes]:
    """How DynamoDB says that it did nothing."""
    if fault is Fault.BROKEN:
        return 500, _error("InternalServerError")
    if fault is Fault.THROTTLE:
        return 400, _error("ProvisionedThroughputExceededException")
    if target != "TransactWriteItems":
        return 400, _error("TransactionConflictException")
    count = len(json.loads(content)["TransactItems"])
    reasons = [{"Code": "TransactionConflict", "Message": "Transaction is ongoing for the item"}]
    reasons += [{"Code": "None"}] * (count - 1)
    return 400, _error("TransactionCanceledException", CancellationReasons=reasons)


def _error(code: str, **more: object) -> bytes:
    name = f"com.amazonaws.dynamodb.v20120810#{code}"
    return json.dumps({"__type": name, "message": f"{code} was injected", **more}).encode()
