"""The local cloud as its users meet it: closed, durable, and with nothing left behind."""

import json
import os
import signal
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from localstack import daemons
from localstack.processes import marked
from localstack.testing import TestCloud

LISTENING = "0A"


def listeners(pids: set[int]) -> set[str]:
    """The addresses, as text, on which these processes accept TCP connections."""
    found: set[str] = set()
    for pid in pids:
        inodes = sockets_of(pid)
        for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
            for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == LISTENING and fields[9] in inodes:
                    found.add(address(fields[1].partition(":")[0], family))
    return found


def sockets_of(pid: int) -> set[str]:
    links = (os.readlink(entry) for entry in Path(f"/proc/{pid}/fd").iterdir() if entry.is_symlink())
    return {link.removeprefix("socket:[").removesuffix("]") for link in links if link.startswith("socket:[")}


def address(words: str, family: socket.AddressFamily) -> str:
    """The kernel writes addresses as 32-bit words in the byte order of the machine."""
    data = b"".join(bytes.fromhex(words[i : i + 8])[::-1] for i in range(0, len(words), 8))
    return socket.inet_ntop(family, data)


def refusal(request: urllib.request.Request) -> int:
    try:
        with urllib.request.urlopen(request, timeout=5) as response:
            return response.status
    except urllib.error.HTTPError as error:
        return error.code


def test_listens_on_loopback_only(bare_cloud: TestCloud) -> None:
    pids = set(marked(bare_cloud.state.folder))
    assert bare_cloud.cloud.pids
    assert set(bare_cloud.cloud.pids.values()) <= pids
    found = listeners(pids)
    assert "127.0.0.1" in found
    assert all(each.startswith("127.") or each == "::1" for each in found)


HARMLESS = {
    "dynamodb": "list_tables",
    "s3": "list_buckets",
    "lambda": "list_functions",
    "stepfunctions": "list_state_machines",
    "secretsmanager": "list_secrets",
    "iam": "list_users",
    "sts": "get_caller_identity",
    "ecs": "list_clusters",
    "apigatewayv2": "get_apis",
}


@pytest.mark.parametrize("service", sorted(HARMLESS))
@pytest.mark.parametrize("access_key", ["test", "000000000000", "AKIAIOSFODNN7EXAMPLE", None])
def test_forged_credentials_are_refused(bare_cloud: TestCloud, access_key: str | None, service: str) -> None:
    """Well-known keys, an unknown one, and our own with another secret."""
    arguments = bare_cloud.cloud.client_arguments()
    forged = {
        "aws_access_key_id": access_key or arguments["aws_access_key_id"],
        "aws_secret_access_key": "test",
    }
    call = getattr(boto3.client(service, **{**arguments, **forged}), HARMLESS[service])
    with pytest.raises(ClientError) as refused:
        call()
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] in {400, 401, 403}
    getattr(boto3.client(service, **arguments), HARMLESS[service])()


JUNK = {
    "Authorization": "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20260101/us-east-1/s3/aws4_request, "
    f"SignedHeaders=host, Signature={'0' * 64}",
    "X-Amz-Date": "20260101T000000Z",
}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/_ministack/reset"),
        ("POST", "/_ministack/config"),
        ("PUT", "/_ministack/cfn-response/x"),
        ("PUT", "/_ministack/cfn-signal/x"),
        ("PUT", "/latest/api/token"),
        ("GET", "/_ministack/lambda-code/nodus-api"),
        ("GET", "/latest/meta-data/iam/security-credentials/"),
        ("GET", "/v2/credentials/x"),
        ("GET", "/_aws/ses"),
        ("GET", "/some-bucket/some-key"),
    ],
)
@pytest.mark.parametrize("headers", [{}, JUNK], ids=["unsigned", "junk"])
def test_what_asks_for_no_credentials_is_closed(
    bare_cloud: TestCloud, method: str, path: str, headers: dict[str, str]
) -> None:
    """Also to a request that only looks signed, as nothing behind the gate would check it."""
    url = bare_cloud.cloud.endpoint + path
    data = b"" if method in {"POST", "PUT"} else None
    assert refusal(urllib.request.Request(url, method=method, data=data, headers=headers)) == 403


@pytest.mark.parametrize("version", ["s3", "s3v4"])
def test_a_forged_presigned_address_is_refused(bare_cloud: TestCloud, version: str) -> None:
    arguments = bare_cloud.cloud.client_arguments()
    s3 = boto3.client("s3", **arguments)
    s3.create_bucket(Bucket=f"presigned-{version}")
    s3.put_object(Bucket=f"presigned-{version}", Key="a", Body=b"a")

    def presigned(**change: str) -> urllib.request.Request:
        client = boto3.client("s3", **{**arguments, **change, "config": Config(signature_version=version)})
        return urllib.request.Request(
            client.generate_presigned_url("get_object", Params={"Bucket": f"presigned-{version}", "Key": "a"})
        )

    assert refusal(presigned()) == 200
    assert refusal(presigned(aws_secret_access_key="x" * 40)) == 403


def test_a_foreign_host_name_is_refused(bare_cloud: TestCloud) -> None:
    url = f"{bare_cloud.cloud.endpoint}/_ministack/health"
    assert refusal(urllib.request.Request(url)) == 200
    assert refusal(urllib.request.Request(url, headers={"Host": "attacker.example"})) == 403


def test_nothing_in_the_state_folder_is_another_user_s_to_read(bare_cloud: TestCloud) -> None:
    """Prompts, answers and keys are there; what sandboxes see of it is mounted for them."""
    state = bare_cloud.state
    assert state.folder.stat().st_mode & 0o077 == 0
    for part in state.parts:
        assert part.stat().st_mode & 0o077 == 0, part
    for part in set(state.parts) - {state.sandboxes}:  # what is below it belongs to the sandboxes' users too
        open_files = [path for path in part.rglob("*") if path.is_file() and path.stat().st_mode & 0o077]
        assert open_files == [], part
    assert state.cloud_file.stat().st_mode & 0o777 == 0o600


def make_table(cloud: TestCloud, name: str) -> str:
    client = boto3.client("dynamodb", **cloud.cloud.client_arguments())
    answer = client.create_table(
        TableName=name,
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )
    return answer["TableDescription"]["TableArn"]


def test_iam_denies_what_a_role_does_not_allow(bare_cloud: TestCloud) -> None:
    allowed, other = make_table(bare_cloud, "iam-allowed"), make_table(bare_cloud, "iam-other")
    arguments = bare_cloud.cloud.client_arguments()
    iam = boto3.client("iam", **arguments)
    trust = {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}
    role = iam.create_role(RoleName="narrow", AssumeRolePolicyDocument=json.dumps({"Statement": [trust]}))
    statement = {"Effect": "Allow", "Action": "dynamodb:PutItem", "Resource": allowed}
    document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    iam.put_role_policy(RoleName="narrow", PolicyName="put", PolicyDocument=document)
    session = boto3.client("sts", **arguments).assume_role(
        RoleArn=role["Role"]["Arn"], RoleSessionName="test"
    )
    keys = session["Credentials"]
    narrow = boto3.client(
        "dynamodb",
        endpoint_url=arguments["endpoint_url"],
        region_name=arguments["region_name"],
        aws_access_key_id=keys["AccessKeyId"],
        aws_secret_access_key=keys["SecretAccessKey"],
        aws_session_token=keys["SessionToken"],
    )
    narrow.put_item(TableName=allowed.rpartition("/")[2], Item={"pk": {"S": "1"}})
    with pytest.raises(ClientError, match="AccessDenied"):
        narrow.put_item(TableName=other.rpartition("/")[2], Item={"pk": {"S": "1"}})
    with pytest.raises(ClientError, match="AccessDenied"):
        narrow.delete_item(TableName=allowed.rpartition("/")[2], Key={"pk": {"S": "1"}})


def test_down_and_up_keep_what_was_stored(bare_cloud: TestCloud) -> None:
    make_table(bare_cloud, "kept")
    arguments = bare_cloud.cloud.client_arguments()
    boto3.client("dynamodb", **arguments).put_item(TableName="kept", Item={"pk": {"S": "1"}, "n": {"N": "7"}})
    s3 = boto3.client("s3", **arguments)
    s3.create_bucket(Bucket="kept")
    s3.put_object(Bucket="kept", Key="a/b", Body=b"bytes \x00 \xff")
    boto3.client("secretsmanager", **arguments).create_secret(Name="kept", SecretString="word")

    bare_cloud.run("down")
    assert list(marked(bare_cloud.state.folder)) == []
    bare_cloud.run("up", "--no-deploy")

    assert bare_cloud.cloud.client_arguments() == arguments
    item = boto3.client("dynamodb", **arguments).get_item(TableName="kept", Key={"pk": {"S": "1"}})["Item"]
    assert item["n"] == {"N": "7"}
    stored = boto3.client("s3", **arguments).get_object(Bucket="kept", Key="a/b")["Body"].read()
    assert stored == b"bytes \x00 \xff"
    secret = boto3.client("secretsmanager", **arguments).get_secret_value(SecretId="kept")
    assert secret["SecretString"] == "word"


def test_a_second_up_changes_nothing(bare_cloud: TestCloud) -> None:
    before = bare_cloud.cloud, bare_cloud.state.cloud_file.stat().st_mtime_ns
    pids = set(marked(bare_cloud.state.folder))
    bare_cloud.run("up", "--no-deploy")
    assert (bare_cloud.cloud, bare_cloud.state.cloud_file.stat().st_mtime_ns) == before
    assert set(marked(bare_cloud.state.folder)) == pids


@pytest.fixture
def stopped_cloud(bare_cloud: TestCloud) -> Iterator[TestCloud]:
    bare_cloud.run("down")
    yield bare_cloud
    bare_cloud.run("up", "--no-deploy")


def test_a_stale_pid_file_is_no_process(stopped_cloud: TestCloud) -> None:
    """The pid now belongs to another process, ours: it must be neither taken for the cloud nor killed."""
    record = json.dumps({"pid": os.getpid(), "started": "another-boot:1"})
    (stopped_cloud.state.run / f"{daemons.CLOUD}.pid").write_text(record)
    assert stopped_cloud.run("down").stdout == "nothing ran\n"
    (stopped_cloud.state.run / f"{daemons.CLOUD}.pid").write_text(record)
    stopped_cloud.run("up", "--no-deploy")
    assert stopped_cloud.cloud.pids[daemons.CLOUD] != os.getpid()
    assert daemons.answers(stopped_cloud.cloud)


def test_up_after_a_killed_emulator_starts_a_new_one(bare_cloud: TestCloud) -> None:
    killed = bare_cloud.cloud.pids[daemons.CLOUD]
    os.kill(killed, signal.SIGKILL)
    bare_cloud.run("up", "--no-deploy")
    assert bare_cloud.cloud.pids[daemons.CLOUD] != killed
    assert daemons.answers(bare_cloud.cloud)


def test_up_after_a_killed_model_server_starts_it_where_it_was(bare_cloud: TestCloud) -> None:
    """At once after the kill; runs under way still have its address, the first one of a new cloud too."""
    port, killed = daemons.scripted_port(bare_cloud.state), bare_cloud.cloud.pids[daemons.SCRIPTED]
    os.kill(killed, signal.SIGKILL)
    bare_cloud.run("up", "--no-deploy")
    assert bare_cloud.cloud.pids[daemons.SCRIPTED] != killed
    assert daemons.scripted_port(bare_cloud.state) == port
    with socket.create_connection(("127.0.0.1", port or 0), timeout=5):
        pass


def test_down_twice_says_so(stopped_cloud: TestCloud) -> None:
    again = stopped_cloud.run("down")
    assert again.stdout == "nothing ran\n"
