"""The journal: the one table that holds the truth."""

from aws_cdk import RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct

from infra.names import DUE_INDEX
from infra.settings import Settings

TTL_ATTRIBUTE = "ttl"


class JournalTable(Construct):
    """A table keyed by `pk` and `sk`, its stream, and the sparse index `due`.

    The stream carries the new image only: a reader acts on what is, never on the difference to what was,
    since records may be repeated. The index projects keys only: the sweeper starts a line by its key, and
    the line reads the rest itself.
    """

    def __init__(self, scope: Construct, construct_id: str, *, settings: Settings) -> None:
        super().__init__(scope, construct_id)
        self.table = dynamodb.Table(
            self,
            "Table",
            partition_key=_text("pk"),
            sort_key=_text("sk"),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            stream=dynamodb.StreamViewType.NEW_IMAGE,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            time_to_live_attribute=TTL_ATTRIBUTE,
            deletion_protection=settings.protect,
            removal_policy=RemovalPolicy.RETAIN if settings.protect else RemovalPolicy.DESTROY,
        )
        self.table.add_global_secondary_index(
            index_name=DUE_INDEX,
            partition_key=_text("dueShard"),
            sort_key=_text("dueAt"),
            projection_type=dynamodb.ProjectionType.KEYS_ONLY,
        )

    @property
    def due_index_arn(self) -> str:
        """The ARN of the index that the sweeper reads."""
        return f"{self.table.table_arn}/index/{DUE_INDEX}"


def _text(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)
