"""The bus that carries lifecycle events to whoever wants them."""

from aws_cdk import aws_events as events
from constructs import Construct

from infra.names import Names


class EventBus(Construct):
    """The bus `nodus`; rules on it belong to their readers."""

    def __init__(self, scope: Construct, construct_id: str, *, names: Names) -> None:
        super().__init__(scope, construct_id)
        self.bus = events.EventBus(self, "Bus", event_bus_name=names.prefix)
