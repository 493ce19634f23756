"""What wakes the reactor, and where what it could not handle is kept."""

# jsii's classes name parameters differently from its protocols (`_id`, `id`), which a type checker refuses;
# jsii itself checks every argument's type whenever the app is built.
# pyright: reportArgumentType=false

from aws_cdk import Duration
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_destinations as destinations
from aws_cdk import aws_lambda_event_sources as sources
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from infra.constructs.acknowledgements import acknowledge
from infra.constructs.function import NodusFunction
from infra.constructs.sandbox_cluster import SandboxCluster
from infra.names import Names

OUTBOX_ONLY = {
    "eventName": lambda_.FilterRule.or_("INSERT", "MODIFY"),
    "dynamodb": {"NewImage": {"outbox": {"S": lambda_.FilterRule.exists()}}},
}
# After these attempts a record goes to the failures; the sweeper has done its work by then.
ATTEMPTS = 3
MAX_AGE = Duration.hours(1)


class ReactorSources(Construct):
    """The journal's stream, executions that ended badly, sandboxes that stopped; and the queue of failures.

    All of them are kicks: what lands in the queue is lost as a kick only, and found by the sweeper.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        reactor: NodusFunction,
        table: dynamodb.Table,
        machine: sfn.StateMachine,
        sandboxes: SandboxCluster,
        names: Names,
    ) -> None:
        super().__init__(scope, construct_id)
        self.failures = sqs.Queue(
            self,
            "Failures",
            queue_name=names.of("reactor-failures"),
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            retention_period=Duration.days(14),
        )
        acknowledge(
            self.failures,
            {"AwsSolutions-SQS3": "This is a dead-letter queue: of the stream and of the rules below."},
        )
        # A rule's own queue is for what EventBridge could not hand over. What the function took and failed at
        # would else be dropped by Lambda after its retries, without a trace.
        reactor.function.configure_async_invoke(on_failure=destinations.SqsDestination(self.failures))
        self._read_stream(reactor, table)
        self._rule("LineDied", "A line's execution ended without saying so", reactor, _line_died(machine))
        self._rule("SandboxStopped", "A sandbox's task has stopped", reactor, _sandbox_stopped(sandboxes))

    def _read_stream(self, reactor: NodusFunction, table: dynamodb.Table) -> None:
        reactor.function.add_event_source(
            sources.DynamoEventSource(
                table,
                # From the oldest record: repeats are allowed, gaps only cost time, and a new mapping would
                # else miss what was written while it was made.
                starting_position=lambda_.StartingPosition.TRIM_HORIZON,
                batch_size=100,
                parallelization_factor=10,
                bisect_batch_on_error=True,
                report_batch_item_failures=True,
                retry_attempts=ATTEMPTS,
                max_record_age=MAX_AGE,
                on_failure=sources.SqsDlq(self.failures),
                filters=[lambda_.FilterCriteria.filter(OUTBOX_ONLY)],
            )
        )

    def _rule(self, name: str, why: str, reactor: NodusFunction, pattern: events.EventPattern) -> None:
        target = targets.LambdaFunction(
            reactor.function, dead_letter_queue=self.failures, retry_attempts=ATTEMPTS, max_event_age=MAX_AGE
        )
        events.Rule(self, name, description=why, event_pattern=pattern, targets=[target])


def _line_died(machine: sfn.StateMachine) -> events.EventPattern:
    return events.EventPattern(
        source=["aws.states"],
        detail_type=["Step Functions Execution Status Change"],
        detail={
            "stateMachineArn": [machine.state_machine_arn],
            "status": ["FAILED", "TIMED_OUT", "ABORTED"],
        },
    )


def _sandbox_stopped(sandboxes: SandboxCluster) -> events.EventPattern:
    return events.EventPattern(
        source=["aws.ecs"],
        detail_type=["ECS Task State Change"],
        detail={"clusterArn": [sandboxes.cluster.attr_arn], "lastStatus": ["STOPPED"]},
    )
