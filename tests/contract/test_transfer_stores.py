"""Contents on their way: the double and S3 (as MiniStack has it) hold them, give them back, and forget them."""

import urllib.request
from collections.abc import Callable
from typing import Any

import pytest
from nodus_core.aws.s3_transfers import S3Transfers
from nodus_core.journal.payloads import Scope
from nodus_core.journal.transfers import Transfers
from nodus_core.testing.memory_transfers import MemoryTransfers

SCOPE, OTHER = Scope("acme", "sandbox-1"), Scope("acme", "sandbox-2")
BUCKET = "transfers"


@pytest.fixture
def s3(s3_with: Callable[[str], Any]) -> Any:
    return s3_with(BUCKET)


@pytest.fixture(params=["memory", "ministack"])
def transfers(request: pytest.FixtureRequest) -> Transfers:
    if request.param == "memory":
        return MemoryTransfers()
    return S3Transfers(request.getfixturevalue("s3"), BUCKET)


def test_a_content_is_there_until_it_is_removed(transfers: Transfers) -> None:
    assert (transfers.get(SCOPE, "a", 10), transfers.size(SCOPE, "a")) == (None, None)
    transfers.put(SCOPE, "a", b"\0content")
    assert (transfers.get(SCOPE, "a", 100), transfers.size(SCOPE, "a")) == (b"\0content", 8)
    assert transfers.get(SCOPE, "a", 3) == b"\0co"
    assert transfers.get(OTHER, "a", 100) is None
    transfers.put(SCOPE, "a", b"")
    assert transfers.get(SCOPE, "a", 100) == b""
    transfers.remove(SCOPE, "a")
    transfers.remove(SCOPE, "a")
    assert transfers.get(SCOPE, "a", 100) is None


def test_an_address_leads_to_one_content(transfers: Transfers) -> None:
    there = transfers.address_to_put(SCOPE, "up", 4)
    if isinstance(transfers, MemoryTransfers):
        transfers.contents[there] = b"sent"
    else:
        headers = {"Content-Type": "application/octet-stream"}
        sent = urllib.request.Request(there, data=b"sent", method="PUT", headers=headers)
        with urllib.request.urlopen(sent) as answer:
            assert answer.status == 200
        with urllib.request.urlopen(transfers.address_to_get(SCOPE, "up")) as answer:
            assert answer.read() == b"sent"
    assert transfers.get(SCOPE, "up", 100) == b"sent"
