"""The wire to DynamoDB: signed requests, errors by code, and everything that is no answer."""

import json
import threading
import zlib
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

import pytest
from botocore.credentials import Credentials
from nodus_core.aws.dynamodb_wire import DynamoDbError, DynamoDbWire, NoAnswer

OK = json.dumps({"Item": {"pk": {"S": "p"}}}).encode()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    status = 200
    content = OK
    checksum: int | None = None
    silent = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.seen: list[tuple[dict[str, str], dict[str, Any]]] = []
        self.released = threading.Event()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        server = cast("_Server", self.server)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        server.seen.append((dict(self.headers.items()), json.loads(body)))
        if server.silent:
            server.released.wait(10)
        self.send_response(server.status)
        self.send_header("Content-Length", str(len(server.content)))
        if server.checksum is not None:
            self.send_header("x-amz-crc32", str(server.checksum))
        self.end_headers()
        self.wfile.write(server.content)

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""


@pytest.fixture
def server() -> Iterator[_Server]:
    made = _Server()
    thread = threading.Thread(target=made.serve_forever, args=(0.02,))
    thread.start()
    yield made
    made.released.set()
    made.shutdown()
    thread.join()
    made.server_close()


@pytest.fixture
def wire(server: _Server) -> Iterator[DynamoDbWire]:
    credentials = Credentials("AKIATEST", "secret", "session-token")
    made = DynamoDbWire(f"http://127.0.0.1:{server.server_port}", "eu-central-1", credentials, read_s=0.5)
    yield made
    made.close()


def test_a_request_is_signed_json(server: _Server, wire: DynamoDbWire) -> None:
    answer = wire.call("GetItem", {"TableName": "journal"})

    assert answer == {"Item": {"pk": {"S": "p"}}}
    ((headers, body),) = server.seen
    assert body == {"TableName": "journal"}
    assert headers["x-amz-target"] == "DynamoDB_20120810.GetItem"
    assert headers["content-type"] == "application/x-amz-json-1.0"
    assert headers["x-amz-security-token"] == "session-token"
    assert "/eu-central-1/dynamodb/aws4_request" in headers["authorization"]
    signed = headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
    assert {"host", "x-amz-date", "x-amz-security-token", "x-amz-target"} <= set(signed)


def test_a_right_checksum_passes_and_a_wrong_one_is_no_answer(server: _Server, wire: DynamoDbWire) -> None:
    server.checksum = zlib.crc32(OK)
    wire.call("GetItem", {})
    server.checksum = 1

    with pytest.raises(NoAnswer, match=r"GetItem.*checksum"):
        wire.call("GetItem", {})


@pytest.mark.parametrize(
    ("code", "status", "again"),
    [
        ("ThrottlingException", 400, True),
        ("ProvisionedThroughputExceededException", 400, True),
        ("RequestLimitExceeded", 400, True),
        ("TransactionConflictException", 400, True),
        ("TransactionInProgressException", 400, True),
        ("InternalServerError", 500, True),
        ("SomethingNew", 503, True),
        ("ConditionalCheckFailedException", 400, False),
        ("ValidationException", 400, False),
        ("AccessDeniedException", 400, False),
        ("ResourceNotFoundException", 400, False),
    ],
)
def test_errors_by_code(server: _Server, wire: DynamoDbWire, code: str, status: int, again: bool) -> None:
    server.status = status
    body = {
        "__type": f"com.amazonaws.dynamodb.v20120810#{code}",
        "Message": "because",
        "Item": {"n": {"N": "1"}},
    }
    server.content = json.dumps(body).encode()

    with pytest.raises(DynamoDbError, match=f"PutItem: {code}: because") as failure:
        wire.call("PutItem", {})

    assert (failure.value.code, failure.value.again, failure.value.status) == (code, again, status)
    assert failure.value.body["Item"] == {"n": {"N": "1"}}


@pytest.mark.parametrize(
    ("codes", "again"),
    [
        (["None", "TransactionConflict"], True),
        (["ThrottlingError", "TransactionConflict"], True),
        (["ProvisionedThroughputExceeded", "None"], True),
        (["ConditionalCheckFailed", "TransactionConflict"], False),
        (["None", "ConditionalCheckFailed"], False),
        (["ValidationError", "None"], False),
        ([], False),
    ],
)
def test_a_cancelled_transaction_by_its_reasons(
    server: _Server, wire: DynamoDbWire, codes: list[str], again: bool
) -> None:
    server.status = 400
    reasons = [{"Code": code} for code in codes]
    server.content = json.dumps(
        {"__type": "TransactionCanceledException", "CancellationReasons": reasons}
    ).encode()

    with pytest.raises(DynamoDbError) as failure:
        wire.call("TransactWriteItems", {})

    assert failure.value.again is again
    assert failure.value.reasons == reasons


def test_a_page_of_a_proxy_is_no_answer(server: _Server, wire: DynamoDbWire) -> None:
    server.status, server.content = 502, b"<html>Bad gateway</html>"

    with pytest.raises(NoAnswer, match="PutItem: HTTP 502"):
        wire.call("PutItem", {})


def test_silence_is_no_answer(server: _Server, wire: DynamoDbWire) -> None:
    server.silent = True

    with pytest.raises(NoAnswer, match="timed out"):
        wire.call("PutItem", {})


def test_a_closed_door_is_no_answer(server: _Server, unused_port: Callable[[], int]) -> None:
    wire = DynamoDbWire(f"http://127.0.0.1:{unused_port()}", "eu-central-1", Credentials("a", "b"))

    with pytest.raises(NoAnswer, match="refused"):
        wire.call("PutItem", {})
    wire.close()


def test_an_address_without_a_host_is_refused() -> None:
    with pytest.raises(ValueError, match="scheme and a host"):
        DynamoDbWire("dynamodb.example", "eu-central-1", Credentials("a", "b"))


def test_https_checks_certificates() -> None:
    wire = DynamoDbWire("https://dynamodb.eu-central-1.amazonaws.com", "eu-central-1", Credentials("a", "b"))

    assert wire._pool.scheme == "https"
    assert wire._pool.cert_reqs == "CERT_REQUIRED"  # type: ignore[attr-defined]
    wire.close()
