"""Logging in by AWS identity, from the wire. AWS's word is a double's here; tests/contract has MiniStack's STS."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from botocore.credentials import Credentials
from nodus_core.access.signed_calls import Judge, Judged, server_name
from nodus_core.conversations.logins import counted
from nodus_core.documents.shared import LOGIN_ANSWER, SHARED
from nodus_core.journal.keys import rate_key
from nodus_core.kernel.errors import Refusal, RetryableError
from nodus_core.kernel.ids import digest
from nodus_core.resources.login import BODY, SignedCall

from tests.unit.access.signing import STS, signed
from tests.unit.api.rest import Reply, Rest

LOGINS = "/apis/nodus.dev/v1/logins"
SESSION = "arn:aws:sts::123456789012:assumed-role/dev/alice"
ROLE = "arn:aws:iam::123456789012:role/dev"


@dataclass
class Aws:
    """AWS's word on everybody who asks: `arn`, or what it raises."""

    arn: str = SESSION
    raises: Exception | None = None
    asked: list[Judged] = field(default_factory=list[Judged])

    def whose(self, call: Judged) -> str:
        self.asked.append(call)
        if self.raises is not None:
            raise self.raises
        return self.arn


class Login:
    def __init__(self) -> None:
        self.aws = Aws()
        self.rest = Rest(identities=self.aws)
        self.rest.directory.map_identity(
            "acme", "arn:aws:iam::123456789012:role/team/dev", ["web"], ["viewer"]
        )

    def sign(self, server: str = "api.test", **more: Any) -> dict[str, Any]:
        return signed(self.rest.world.clock.now(), server, **more)

    def __call__(self, aws: dict[str, Any] | None = None, *, header: str | None = None, **spec: Any) -> Reply:
        wanted = {"aws": self.sign() if aws is None else aws, **spec}
        headers = {"authorization": "", **({"nodus-org": header} if header else {})}
        return self.rest.post(LOGINS, login(wanted), headers=headers)


def login(spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "nodus.dev/v1", "kind": "Login", "spec": spec}


@pytest.fixture
def log_in() -> Login:
    return Login()


@pytest.mark.req("NODQ-98", "NOD-481")
def test_an_identity_that_is_mapped_gets_a_key_for_an_hour(log_in: Login) -> None:
    answer = log_in()
    assert answer.code == 201
    status = answer.json["status"]
    token = status.pop("token")
    assert answer.json["spec"] == {"organization": "acme", "ttl": "1h"}
    assert status == {
        "expiresAt": "2030-01-01T01:00:00Z",
        "apiKey": status["apiKey"],
        "identity": ROLE,
        "projects": ["web"],
        "permissions": ["viewer"],
    }
    rest = log_in.rest
    assert rest.get("agents", key=token).code == 200
    assert rest.apply("agents/a", {"apiVersion": "nodus.dev/v1"}, key=token).code == 403
    assert rest.get("agents", key=token, project="lab").code == 403
    key = rest.get(f"/apis/nodus.dev/v1/apikeys/{status['apiKey']}").json
    assert (key["status"]["createdBy"], key["spec"]["expiresAt"]) == (ROLE, status["expiresAt"])
    assert token not in repr(rest.store.rows())
    rest.world.clock.advance(3600)
    assert rest.get("agents", key=token).code == 401


def test_the_answer_has_the_fields_that_are_documented(log_in: Login) -> None:
    answer, documented = log_in().json, SHARED[LOGIN_ANSWER]
    for part in ((), ("spec",), ("status",)):
        given, schema = answer, documented
        for name in part:
            given, schema = given[name], schema["properties"][name]
        assert given.keys() == schema["properties"].keys() == set(schema["required"])


def test_what_goes_to_aws_is_the_signed_request_and_nothing_else(log_in: Login) -> None:
    temporary = Credentials("ASIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG", "session-token")
    call = log_in.sign(credentials=temporary)
    call["headers"]["Cookie"] = "unsigned"
    assert log_in(call).code == 201
    (sent,) = log_in.aws.asked
    assert (sent.url, sent.body) == (STS, BODY.encode())
    assert sent.headers == {
        name.lower(): value for name, value in call["headers"].items() if name.lower() != "cookie"
    }


def test_a_signed_request_logs_in_once(log_in: Login) -> None:
    call = log_in.sign()
    assert log_in(call).code == 201
    log_in.rest.world.clock.advance(600)
    stored = log_in.rest.commits
    again = log_in(call)
    assert (again.code, again.json["reason"]) == (401, "Unauthorized")
    assert "used before" in again.json["message"]
    assert len(log_in.aws.asked) == 1  # AWS is not asked twice
    assert log_in.rest.commits == stored


def test_of_two_equal_requests_at_once_one_logs_in(log_in: Login) -> None:
    call, nested = log_in.sign(), []

    def whose(_: Judged) -> str:
        if not nested:
            nested.append(None)
            nested.append(log_in(call))  # while the first one waits for AWS's answer
        return SESSION

    log_in.aws.whose = whose  # type: ignore[method-assign]
    first = log_in(call)
    assert {first.code, nested[1].code} == {401, 201}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("arn", "code"),
    [
        (ROLE, 201),
        ("arn:aws:iam::123456789012:role/other/path/dev", 201),
        ("arn:aws:sts::123456789012:assumed-role/dev/bob@example.com", 201),
        ("arn:aws:sts::123456789012:assumed-role/Dev/alice", 403),
        ("arn:aws:sts::123456789013:assumed-role/dev/alice", 403),
        ("arn:aws-cn:sts::123456789012:assumed-role/dev/alice", 403),
        ("arn:aws:iam::123456789012:user/dev", 403),
        ("arn:aws:iam::123456789012:root", 403),
        ("arn:aws:sts::123456789012:federated-user/dev", 403),
        ("arn:aws:sts::123456789012:assumed-role/dev", 500),
        ("dev", 500),
    ],
)
def test_a_session_is_its_role_and_no_other(log_in: Login, arn: str, code: int) -> None:
    log_in.aws.arn = arn
    answer = log_in()
    assert answer.code == code
    if code == 403:
        assert answer.json["reason"] == "Forbidden"
        assert (
            arn in answer.json["message"] or "role/Dev" in answer.json["message"] or "role/dev" in answer.text
        )


def test_the_organization_is_named_where_there_are_several(log_in: Login) -> None:
    directory = log_in.rest.directory
    directory.create_organization("rival")
    directory.map_identity("rival", SESSION, ["*"], ["admin"])
    unsaid = log_in()
    assert (unsaid.code, unsaid.json["reason"]) == (400, "BadRequest")
    assert "acme, rival" in unsaid.json["message"]
    log_in.rest.world.clock.advance(1)
    assert log_in(organization="rival").json["status"]["permissions"] == ["admin"]
    log_in.rest.world.clock.advance(1)
    assert log_in(header="acme").json["status"]["permissions"] == ["viewer"]
    log_in.rest.world.clock.advance(1)
    assert log_in(header="acme", organization="rival").code == 400


def test_nothing_is_told_of_organizations_that_do_not_know_the_identity(log_in: Login) -> None:
    log_in.rest.directory.create_organization("rival")
    answers = []
    for org in ("rival", "nobody"):
        log_in.rest.world.clock.advance(1)
        refused = log_in(organization=org)
        assert refused.code == 403
        answers.append(refused.text.replace(org, "ORG"))
    assert answers[0] == answers[1]


def test_who_is_mapped_no_more_gets_no_key(log_in: Login) -> None:
    assert log_in.rest.directory.unmap_identity("acme", ROLE)
    assert log_in().code == 403
    assert not log_in.rest.directory.unmap_identity("acme", ROLE)


def test_logins_from_one_address_are_counted(log_in: Login) -> None:
    codes = [log_in(log_in.sign(more={"X-Amz-Content-Sha256": digest(str(n))})).code for n in range(11)]
    assert codes == [201] * 10 + [429]
    refused = log_in(log_in.sign()).json
    assert "address" in refused["message"]
    assert "key" not in refused["message"]
    (row,) = [
        row for row in log_in.rest.store.rows().values() if row["pk"] == rate_key(counted("192.0.2.1")).pk
    ]
    lives = row["ttl"] - log_in.rest.world.clock.now().timestamp()
    assert 60 <= lives <= 600


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff", True),
        ("2001:db8:1:2::1", "2001:DB8:1:2:0:0:0:2", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("192.0.2.1", "192.0.2.2", False),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("::ffff:192.0.2.2", "::ffff:192.0.2.1", False),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        ("", "what is no address", False),
    ],
)
def test_whoever_has_a_whole_network_is_one_caller(one: str, other: str, same: bool) -> None:
    assert (counted(one) == counted(other)) is same


def test_logins_from_one_network_are_counted_together(log_in: Login) -> None:
    def from_(address: str, number: int) -> int:
        aws = log_in.sign(more={"X-Amz-Content-Sha256": digest(str(number))})
        return log_in.rest.post(LOGINS, login({"aws": aws}), source=address).code

    codes = [from_(f"2001:db8::{number}", number) for number in range(1, 12)]
    assert codes == [201] * 10 + [429]
    assert from_("2001:db8:0:1::1", 12) == 201


def test_aws_refuses_or_does_not_answer(log_in: Login) -> None:
    log_in.aws.raises = Refusal("Unauthorized", "AWS does not accept the signed request (ExpiredToken)")
    refused = log_in()
    assert (refused.code, refused.json["reason"]) == (401, "Unauthorized")
    log_in.aws.raises = RetryableError("STS answered 503")
    later = log_in()  # the same request: it has not logged in
    assert (later.code, later.json["reason"]) == (503, "ServiceUnavailable")
    log_in.aws.raises = None
    assert log_in().code == 201


@pytest.mark.parametrize(
    "url",
    [
        "http://sts.amazonaws.com/",
        "https://sts.amazonaws.com:444/",
        "https://sts.amazonaws.com/?Action=GetCallerIdentity",
        "https://sts.amazonaws.com/#",
        "https://sts.amazonaws.com/x",
        "https://sts.amazonaws.com//",
        "https://sts.amazonaws.com.evil.example/",
        "https://evil.example/sts.amazonaws.com/",
        "https://user@sts.amazonaws.com/",
        "https://sts.amazonaws.com@evil.example/",
        "https://sts.evil.amazonaws.com/",
        "https://sts.eu-central-1.amazonaws.com.cn/",
        "https://sts.eu-central-1.s3.amazonaws.com/",
        "https://xsts.amazonaws.com/",
        "https://STS.amazonaws.com/",
        "https://sts.amazonaws.com/\n",
        "https://sts.eu-central-\N{ARABIC-INDIC DIGIT ONE}.amazonaws.com/",
        "https://169.254.169.254/latest/meta-data",
        "http://127.0.0.1:4566/",
        "file:///etc/passwd",
        "",
    ],
)
def test_no_other_address_is_ever_called(log_in: Login, url: str) -> None:
    refused = log_in({**log_in.sign(), "url": url})
    assert (refused.code, refused.json["reason"]) == (422, "Invalid")
    assert refused.fields == ["spec.aws.url"]
    assert log_in.aws.asked == []


@pytest.mark.parametrize(
    "url",
    [
        "https://sts.amazonaws.com",
        "https://sts.amazonaws.com/",
        "https://sts.us-gov-west-1.amazonaws.com/",
        "https://sts.ap-southeast-4.amazonaws.com/",
        "https://sts.cn-north-1.amazonaws.com.cn/",
    ],
)
def test_every_endpoint_of_sts_is_one(log_in: Login, url: str) -> None:
    assert log_in(log_in.sign(url=url)).code == 201


def changed(call: dict[str, Any], **headers: str | None) -> dict[str, Any]:
    """The call with other headers, by names with underscores; None removes one."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    kept = {name: value for name, value in call["headers"].items() if name not in names}
    return {**call, "headers": kept | {name: value for name, value in names.items() if value is not None}}


def unsigned(call: dict[str, Any], name: str) -> dict[str, Any]:
    """The call with a header that is said not to be signed."""
    text: str = call["headers"]["Authorization"]
    before, rest = text.split("SignedHeaders=")
    names, signature = rest.split(", ", 1)
    kept = ";".join(word for word in names.split(";") if word != name)
    return changed(call, Authorization=f"{before}SignedHeaders={kept}, {signature}")


def test_a_request_that_is_not_exactly_that_is_refused(log_in: Login) -> None:
    good = log_in.sign()
    cases: list[tuple[dict[str, Any], str]] = [
        ({**good, "method": "GET"}, "spec.aws.method"),
        ({**good, "body": BODY.replace("GetCallerIdentity", "GetSessionToken")}, "spec.aws.body"),
        ({**good, "body": BODY + "&Action=GetSessionToken"}, "spec.aws.body"),
        ({**good, "extra": "x"}, "spec.aws.extra"),
        (changed(good, Authorization=None), "spec.aws.headers.Authorization"),
        (changed(good, Authorization="Bearer x"), "spec.aws.headers.Authorization"),
        (log_in.sign(service="sqs"), "spec.aws.headers.Authorization"),
        (log_in.sign(more={"Accept": "application/json"}), "spec.aws.headers.Authorization"),
        (unsigned(good, "x-nodus-server"), "spec.aws.headers.Authorization"),
        (unsigned(good, "x-amz-date"), "spec.aws.headers.Authorization"),
        (unsigned(good, "host"), "spec.aws.headers.Authorization"),
        (changed(good, X_Nodus_Server=None), "spec.aws.headers"),
        (changed(good, X_Amz_Date=None), "spec.aws.headers"),
        (changed(good, x_nodus_server="api.test"), "spec.aws.headers"),
        (changed(good, X_Amz_Date="now"), "spec.aws.headers.X-Amz-Date"),
        (changed(good, X_Nodus_Server="api.test\r\nX-Evil: 1"), "spec.aws.headers.X-Nodus-Server"),
        (changed(good, X_Nodus_Server="x" * 8193), "spec.aws.headers.X-Nodus-Server"),
    ]
    for call, named in cases:
        log_in.rest.world.clock.advance(1)
        refused = log_in(call)
        assert (refused.code, refused.fields) == (422, [named]), named
    assert log_in.aws.asked == []


def test_a_request_for_another_server_is_of_no_use_here(log_in: Login) -> None:
    for name in ("evil.example", "API.test", "api.test:443", "api.test.evil.example", ""):
        refused = log_in(log_in.sign(name))
        assert (refused.code, refused.json["reason"]) == (401, "Unauthorized"), name
    assert log_in.aws.asked == []


@pytest.mark.parametrize(("seconds", "code"), [(-900, 201), (900, 201), (-901, 401), (901, 401)])
def test_a_request_counts_for_a_quarter_of_an_hour(log_in: Login, seconds: int, code: int) -> None:
    at = log_in.rest.world.clock.now() + timedelta(seconds=seconds)
    assert log_in(signed(at)).code == code


@pytest.mark.parametrize(
    ("ttl", "code"), [("15m", 201), ("12h", 201), ("14m", 422), ("12h1s", 422), ("soon", 422), ("", 422)]
)
def test_a_login_lasts_from_minutes_to_hours(log_in: Login, ttl: str, code: int) -> None:
    assert log_in(ttl=ttl).code == code


def test_the_body_is_read_strictly(log_in: Login) -> None:
    spec = {"aws": log_in.sign()}
    for body, code in (
        ({**login(spec), "kind": "Agent"}, 422),
        ({**login(spec), "apiVersion": "v1"}, 422),
        ({**login(spec), "status": {}}, 422),
        (login({**spec, "role": "admin"}), 422),
        (login({}), 422),
        ("[]", 400),
        ("{", 400),
    ):
        log_in.rest.world.clock.advance(1)
        assert log_in.rest.post(LOGINS, body).code == code
    assert log_in.rest.call("POST", LOGINS, login(spec), kind="text/plain").code == 415
    assert log_in.aws.asked == []


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("https://Api.Example.com", "api.example.com"),
        ("https://api.example.com:443/x", "api.example.com"),
        ("https://api.example.com:8443", "api.example.com:8443"),
        ("http://127.0.0.1:4566/_aws/execute-api/a", "127.0.0.1:4566"),
        ("http://[::1]:4566", "[::1]:4566"),
    ],
)
def test_what_a_server_is_called(address: str, name: str) -> None:
    assert server_name(address) == name


def test_beside_an_emulator_its_address_is_the_only_one(log_in: Login) -> None:
    judge = Judge(frozenset({"api.test"}), "http://127.0.0.1:4566")
    now = log_in.rest.world.clock.now()
    call = SignedCall.model_validate(log_in.sign(url="http://127.0.0.1:4566/"))
    assert judge.judge(call, now).url == "http://127.0.0.1:4566/"
    with pytest.raises(Refusal):
        judge.judge(SignedCall.model_validate(log_in.sign()), now)
