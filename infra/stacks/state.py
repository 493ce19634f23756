"""The stack of what must outlive every deployment."""

from aws_cdk import App, CfnOutput, Stack

from infra.constructs.event_bus import EventBus
from infra.constructs.journal_table import JournalTable
from infra.constructs.payload_bucket import PayloadBucket
from infra.constructs.providers_secret import ProvidersSecret
from infra.names import Names
from infra.settings import Settings


class StateStack(Stack):
    """Journal, payloads, provider keys, and the bus that others have put their rules on."""

    def __init__(self, scope: App, construct_id: str, *, settings: Settings, names: Names) -> None:
        super().__init__(
            scope,
            construct_id,
            description="Nodus: journal, payloads, provider keys, event bus",
            termination_protection=settings.protect,
        )
        self.journal = JournalTable(self, "Journal", settings=settings)
        self.payloads = PayloadBucket(self, "Payloads", settings=settings)
        self.providers = ProvidersSecret(self, "Providers", settings=settings, names=names)
        self.events = EventBus(self, "Events", names=names)
        # By a name of its own: policies say `ARN/*`, and an acknowledged pattern must be known beforehand.
        self.payloads_arn = self.export_value(self.payloads.bucket.bucket_arn, name=names.of("payloads-arn"))
        for name, value in {
            "TableName": self.journal.table.table_name,
            "PayloadBucket": self.payloads.bucket.bucket_name,
            "ProvidersSecretArn": self.providers.arn,
            "BusName": self.events.bus.event_bus_name,
        }.items():
            CfnOutput(self, name, value=value)
