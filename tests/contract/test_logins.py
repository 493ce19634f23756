"""STS's word on signed requests, by MiniStack's STS, which checks signatures."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.credentials import Credentials
from nodus_core.access.identities import normalised
from nodus_core.access.signed_calls import Judge, Judged
from nodus_core.aws.sts import StsIdentities
from nodus_core.kernel.errors import Refusal, RetryableError
from nodus_core.resources.login import SignedCall

from tests.contract.emulator import REGION, Emulator
from tests.unit.access.signing import signed

SERVER = "api.example.com"
TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": "*"}}],
}


@pytest.fixture
def whose(emulator: Emulator) -> Callable[..., str]:
    """Signs as somebody, judges and asks."""

    def ask(credentials: Credentials, change: Callable[[dict[str, Any]], None] = lambda call: None) -> str:
        call = signed(
            datetime.now(UTC), SERVER, url=f"{emulator.endpoint}/", credentials=credentials, region=REGION
        )
        change(call)
        judge = Judge(frozenset({SERVER, "other.example.com"}), emulator.endpoint)
        return StsIdentities().whose(judge.judge(SignedCall.model_validate(call), datetime.now(UTC)))

    return ask


def test_a_user_and_a_session_of_a_role_are_told_apart(
    whose: Callable[..., str], client: Callable[[str], Any]
) -> None:
    iam, sts = client("iam"), client("sts")
    iam.create_user(UserName="alice", Path="/people/")
    made = iam.create_access_key(UserName="alice")["AccessKey"]
    role = iam.create_role(RoleName="dev", Path="/team/", AssumeRolePolicyDocument=json.dumps(TRUST))["Role"][
        "Arn"
    ]
    session = sts.assume_role(RoleArn=role, RoleSessionName="alice")["Credentials"]

    user = whose(Credentials(made["AccessKeyId"], made["SecretAccessKey"]))
    assumed = whose(Credentials(session["AccessKeyId"], session["SecretAccessKey"], session["SessionToken"]))

    assert user.startswith("arn:aws:iam::")
    assert user.endswith(":user/people/alice")
    assert normalised(user) == user
    assert assumed.endswith(":assumed-role/dev/alice")
    assert normalised(assumed) == normalised(role)


def test_what_was_changed_after_signing_is_not_accepted(
    whose: Callable[..., str], client: Callable[[str], Any]
) -> None:
    # Not the emulator's own key: signatures by that one it does not check.
    client("iam").create_user(UserName="bob")
    made = client("iam").create_access_key(UserName="bob")["AccessKey"]
    own = Credentials(made["AccessKeyId"], made["SecretAccessKey"])
    assert whose(own).endswith(":user/bob")

    def redirected(call: dict[str, Any]) -> None:
        call["headers"]["X-Nodus-Server"] = "other.example.com"

    with pytest.raises(Refusal, match="SignatureDoesNotMatch"):
        whose(own, redirected)
    with pytest.raises(Refusal, match="does not accept") as wrong:
        whose(Credentials(made["AccessKeyId"], "not the secret"))
    assert wrong.value.reason == "Unauthorized"


def test_sts_that_does_not_answer_may_be_asked_again() -> None:
    call = Judged("http://127.0.0.1:9/", {}, b"", "0")
    with pytest.raises(RetryableError):
        StsIdentities().whose(call)
