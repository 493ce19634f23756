"""Our signature is the one that botocore makes."""

from datetime import UTC, datetime

import botocore.auth
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nodus_core.aws.signature import Signer

NOW = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
visible = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=40)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    credentials=st.builds(ReadOnlyCredentials, visible, visible, st.none() | visible),
    content=st.binary(max_size=200),
    days=st.integers(0, 400),
)
@pytest.mark.parametrize("port", ["", ":4566"])
def test_botocore_signs_alike(
    monkeypatch: pytest.MonkeyPatch,
    port: str,
    credentials: ReadOnlyCredentials,
    content: bytes,
    days: int,
) -> None:
    now = datetime.fromtimestamp(NOW.timestamp() + days * 86_400, UTC)
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda *_, **__: now.replace(tzinfo=None))
    host = f"dynamodb.example{port}"
    headers = {"X-Amz-Target": "DynamoDB_20120810.PutItem", "Content-Type": "application/x-amz-json-1.0"}
    theirs = AWSRequest("POST", f"https://{host}/", headers, content)
    SigV4Auth(credentials, "dynamodb", "eu-central-1").add_auth(theirs)
    signer = Signer("dynamodb", "eu-central-1", host)

    for _ in range(2):  # the second time with a key that is known
        ours = signer.headers(credentials, "DynamoDB_20120810.PutItem", content, now)
        assert ours["authorization"] == theirs.headers["Authorization"]
        assert ours["x-amz-date"] == theirs.headers["X-Amz-Date"]
        assert ours.get("x-amz-security-token") == theirs.headers.get("X-Amz-Security-Token")


def test_another_day_has_another_key() -> None:
    signer = Signer("dynamodb", "eu-central-1", "dynamodb.example")
    credentials = ReadOnlyCredentials("AKIATEST", "secret", None)
    days = [NOW, NOW.replace(day=3), NOW]

    first, second, third = (signer.headers(credentials, "T", b"", day)["authorization"] for day in days)

    assert first == third != second
