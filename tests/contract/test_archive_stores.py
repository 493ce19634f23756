"""Archive stores: the double and S3 (as MiniStack has it) keep what is PUT to an address of theirs."""

import urllib.request
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from nodus_core.aws.s3_archives import S3Archives
from nodus_core.aws.s3_payloads import S3Payloads
from nodus_core.journal.archives import Archives
from nodus_core.journal.payloads import Scope
from nodus_core.testing.memory_archives import MemoryArchives

SCOPE = Scope("acme", "sandbox-1")
BUCKET = "archives"
WHILE = timedelta(minutes=5)


@pytest.fixture
def s3(s3_with: Callable[[str], Any]) -> Any:
    return s3_with(BUCKET)


@pytest.fixture(params=["memory", "ministack"])
def archives(request: pytest.FixtureRequest) -> Archives:
    if request.param == "memory":
        return MemoryArchives()
    return S3Archives(request.getfixturevalue("s3"), BUCKET)


def put(archives: Archives, name: str, content: bytes) -> None:
    """As a sandbox's daemon does it."""
    url = archives.put_url(SCOPE, name, WHILE)
    if isinstance(archives, MemoryArchives):
        archives.put(url, content)
        return
    headers = {"Content-Type": "application/octet-stream"}
    request = urllib.request.Request(url, data=content, method="PUT", headers=headers)
    with urllib.request.urlopen(request) as answer:
        assert answer.status == 200


def got(archives: Archives, name: str) -> bytes | None:
    url = archives.get_url(SCOPE, name, WHILE)
    if isinstance(archives, MemoryArchives):
        return archives.get(url)
    with urllib.request.urlopen(url) as answer:
        return answer.read()


@pytest.mark.req("NOD-168")
def test_what_is_put_to_an_address_is_there_until_it_is_deleted(archives: Archives) -> None:
    archives.delete(SCOPE, "000001")
    assert archives.size(SCOPE, "000001") is None
    put(archives, "000001", b"first")
    put(archives, "000001", b"again")
    assert (archives.size(SCOPE, "000001"), got(archives, "000001")) == (5, b"again")
    assert archives.size(SCOPE, "000002") is None
    assert archives.size(Scope("acme", "sandbox-2"), "000001") is None
    archives.delete(SCOPE, "000001")
    archives.delete(SCOPE, "000001")
    assert archives.size(SCOPE, "000001") is None


@pytest.mark.req("NOD-173")
def test_an_archive_goes_with_the_payloads_of_its_owner(s3: Any) -> None:
    archives = S3Archives(s3, BUCKET)
    put(archives, "000001", b"first")
    S3Payloads(s3, BUCKET).delete_scope(SCOPE)
    assert archives.size(SCOPE, "000001") is None
