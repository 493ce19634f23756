"""What must outlive every deployment is kept, private and recoverable."""

from tests.infra.synthesis import Assembly, as_list


def test_the_journal_has_its_keys_stream_expiry_index_and_recovery(assembly: Assembly) -> None:
    table = assembly.state.one("AWS::DynamoDB::Table")
    assert table["KeySchema"] == [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ]
    assert table["BillingMode"] == "PAY_PER_REQUEST"
    assert table["StreamSpecification"] == {"StreamViewType": "NEW_IMAGE"}
    assert table["TimeToLiveSpecification"] == {"AttributeName": "ttl", "Enabled": True}
    assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}
    (index,) = table["GlobalSecondaryIndexes"]
    assert index["IndexName"] == "due"
    assert [each["AttributeName"] for each in index["KeySchema"]] == ["dueShard", "dueAt"]
    assert index["Projection"] == {"ProjectionType": "KEYS_ONLY"}


def test_payloads_are_private_encrypted_and_never_expire_by_age(assembly: Assembly) -> None:
    bucket = assembly.state.one("AWS::S3::Bucket")
    assert set(bucket["PublicAccessBlockConfiguration"].values()) == {True}
    assert bucket["BucketEncryption"]
    assert "VersioningConfiguration" not in bucket
    ageing, unfinished = sorted(bucket["LifecycleConfiguration"]["Rules"], key=lambda rule: rule["Id"])
    assert set(unfinished) == {"Id", "Status", "AbortIncompleteMultipartUpload"}
    # What is on its way into a sandbox or out of it is no payload: no organization's name begins so.
    assert (ageing["Prefix"], ageing["ExpirationInDays"]) == ("_transfers/", 1)
    policy = assembly.state.one("AWS::S3::BucketPolicy")["PolicyDocument"]["Statement"]
    (plain,) = (each for each in policy if "Bool" in each.get("Condition", {}))
    assert (plain["Effect"], plain["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})


def test_the_providers_secret_starts_empty_under_its_documented_name(
    assembly: Assembly, other: Assembly
) -> None:
    secret = assembly.state.one("AWS::SecretsManager::Secret")
    assert (secret["Name"], secret["SecretString"]) == ("nodus/providers", "{}")
    assert other.state.one("AWS::SecretsManager::Secret")["Name"] == "nodus-dev/providers"


def test_what_holds_truth_survives_the_deletion_of_its_stack_unless_told_otherwise(
    assembly: Assembly, other: Assembly
) -> None:
    kinds = ("AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::SecretsManager::Secret")
    for made, policy in ((assembly, "Retain"), (other, "Delete")):
        for kind in kinds:
            (resource,) = made.state.of_type(kind).values()
            assert resource["DeletionPolicy"] == policy
        protected = made.state.one("AWS::DynamoDB::Table")["DeletionProtectionEnabled"]
        assert protected is (policy == "Retain")


def test_nothing_that_holds_truth_is_in_the_stack_that_is_deployed_often(assembly: Assembly) -> None:
    kinds = {each["Type"] for each in assembly.service.body["Resources"].values()}
    assert not kinds & {"AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::SecretsManager::Secret"}


def test_the_failures_queue_is_encrypted_and_refuses_plain_http(assembly: Assembly) -> None:
    queue = assembly.service.one("AWS::SQS::Queue")
    assert queue["SqsManagedSseEnabled"] is True
    statements = assembly.service.one("AWS::SQS::QueuePolicy")["PolicyDocument"]["Statement"]
    denied = [each for each in statements if each["Effect"] == "Deny"]
    assert any("aws:SecureTransport" in str(each["Condition"]) for each in denied)
    assert all("*" not in as_list(each["Resource"]) for each in statements)
