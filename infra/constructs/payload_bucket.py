"""The store of values that are too large for a row."""

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.constructs.acknowledgements import acknowledge
from infra.settings import Settings

TRANSFERS = "_transfers/"
"""What the core's `aws.s3_transfers` writes below; no organization's name begins so."""


class PayloadBucket(Construct):
    """A private bucket of immutable payloads under `ORG/RUN UID/SHA256`.

    Payloads are kept for 30 days after their run's end (NOD-077, NOD-594), and whoever removes the run
    removes everything below its prefix, so that objects whose row was never written go too. A lifecycle
    rule cannot stand behind that: S3 counts an object's age from its creation, whatever tags it gets later,
    and a run may wait for months or grow a conversation for years; such a rule would delete what a live run
    still reads. The rules here are for uploads that never became an object, and for contents on their way into
    a sandbox or out of it, which nothing names for longer.
    """

    def __init__(self, scope: Construct, construct_id: str, *, settings: Settings) -> None:
        super().__init__(scope, construct_id)
        self.bucket = s3.Bucket(
            self,
            "Bucket",
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            encryption=s3.BucketEncryption.S3_MANAGED,
            enforce_ssl=True,
            minimum_tls_version=1.2,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            lifecycle_rules=[
                s3.LifecycleRule(id="transfers", prefix=TRANSFERS, expiration=Duration.days(1)),
                s3.LifecycleRule(
                    id="unfinished-uploads", abort_incomplete_multipart_upload_after=Duration.days(1)
                ),
            ],
            removal_policy=RemovalPolicy.RETAIN if settings.protect else RemovalPolicy.DESTROY,
        )
        acknowledge(
            self.bucket,
            {
                "AwsSolutions-S1": "Only the functions read and write here, and each logs what it did with "
                "the run's id; server access logs would be a second, unbounded copy of the keys."
            },
        )
