"""What an operator is told, and what an operator looks at."""

# jsii's classes name parameters differently from its protocols (`_id`, `id`), which a type checker refuses;
# jsii itself checks every argument's type whenever the app is built.
# pyright: reportArgumentType=false

from aws_cdk import Duration, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.constructs.function import NodusFunction
from infra.constructs.functions import Functions
from infra.names import Names
from infra.settings import Settings

FIVE_MINUTES = Duration.minutes(5)
ONE_MINUTE = Duration.minutes(1)
# A kick older than this comes after the sweeper has done its work: the stream no longer helps.
LATE_KICK_MS = 60_000


class Alarms(Construct):
    """Alarms, the topic they go to when there is an address, and the dashboard."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        functions: Functions,
        failures: sqs.Queue,
        settings: Settings,
        names: Names,
    ) -> None:
        super().__init__(scope, construct_id)
        self._names = names
        self._topic = self._make_topic(settings.alarm_email)
        self.alarms = [
            self._failures_alarm(failures),
            self._staleness_alarm(functions.sweeper),
            self._late_kicks_alarm(functions.reactor),
            *(self._errors_alarm(function) for function in functions.all),
            *(self._throttles_alarm(function) for function in functions.all),
        ]
        self._make_dashboard(functions, failures)

    def _make_topic(self, email: str | None) -> sns.Topic | None:
        if not email:
            return None
        topic = sns.Topic(self, "Topic", topic_name=self._names.of("alarms"), enforce_ssl=True)
        # A topic with a policy of its own lost the default one, by which the account's alarms may publish.
        topic.add_to_resource_policy(
            iam.PolicyStatement(
                actions=["sns:Publish"],
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                resources=[topic.topic_arn],
                conditions={"StringEquals": {"aws:SourceAccount": Stack.of(self).account}},
            )
        )
        topic.add_subscription(subscriptions.EmailSubscription(email))
        return topic

    def _alarm(
        self,
        construct_id: str,
        name: str,
        metric: cloudwatch.Metric,
        why: str,
        *,
        threshold: float = 1,
        periods: int = 1,
        below: bool = False,
    ) -> cloudwatch.Alarm:
        """Alarms when the metric reaches the threshold, or falls below it; silence then counts as below."""
        operator = cloudwatch.ComparisonOperator
        alarm = metric.create_alarm(
            self,
            construct_id,
            alarm_name=self._names.of(name),
            alarm_description=why,
            threshold=threshold,
            evaluation_periods=periods,
            comparison_operator=(
                operator.LESS_THAN_THRESHOLD if below else operator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD
            ),
            treat_missing_data=(
                cloudwatch.TreatMissingData.BREACHING if below else cloudwatch.TreatMissingData.NOT_BREACHING
            ),
        )
        if self._topic:
            alarm.add_alarm_action(actions.SnsAction(self._topic))
        return alarm

    def _failures_alarm(self, failures: sqs.Queue) -> cloudwatch.Alarm:
        metric = failures.metric_approximate_number_of_messages_visible(
            period=ONE_MINUTE, statistic="Maximum"
        )
        why = (
            "The reactor gave up on events; the sweeper covers their kicks, but lifecycle events are missing."
        )
        return self._alarm("Failures", "reactor-failures", metric, why)

    def _errors_alarm(self, function: NodusFunction) -> cloudwatch.Alarm:
        metric = function.function.metric_errors(period=FIVE_MINUTES)
        why = f"Invocations of {function.name} fail; look at the errors in its log group."
        return self._alarm(f"{function.name.title()}Errors", f"{function.name}-errors", metric, why)

    def _staleness_alarm(self, sweeper: NodusFunction) -> cloudwatch.Alarm:
        metric = sweeper.function.metric_invocations(period=FIVE_MINUTES)
        why = "The sweeper has not run for five minutes: what no kick reaches stands still."
        return self._alarm("SweeperStale", "sweeper-stale", metric, why, below=True)

    def _late_kicks_alarm(self, reactor: NodusFunction) -> cloudwatch.Alarm:
        metric = reactor.function.metric("IteratorAge", period=ONE_MINUTE, statistic="Maximum")
        why = "The reactor lags behind the journal by a minute or more; runs go on at the sweeper's pace."
        return self._alarm("LateKicks", "reactor-late", metric, why, threshold=LATE_KICK_MS, periods=5)

    def _throttles_alarm(self, function: NodusFunction) -> cloudwatch.Alarm:
        metric = function.function.metric_throttles(period=FIVE_MINUTES)
        why = f"Lambda refuses invocations of {function.name}; raise the account's or its own concurrency."
        return self._alarm(
            f"{function.name.title()}Throttles", f"{function.name}-throttles", metric, why, periods=2
        )

    def _make_dashboard(self, functions: Functions, failures: sqs.Queue) -> None:
        def graph(title: str, metrics: list[cloudwatch.IMetric]) -> cloudwatch.GraphWidget:
            return cloudwatch.GraphWidget(title=title, left=metrics, width=12)

        everyone = [function.function for function in functions.all]
        machine = functions.machine
        cloudwatch.Dashboard(
            self,
            "Dashboard",
            dashboard_name=self._names.prefix,
            widgets=[
                [cloudwatch.AlarmStatusWidget(title="Alarms", alarms=list(self.alarms), width=24)],
                [
                    graph("Invocations", [each.metric_invocations() for each in everyone]),
                    graph("Errors", [each.metric_errors() for each in everyone]),
                ],
                [
                    graph("Duration, p95", [each.metric_duration(statistic="p95") for each in everyone]),
                    graph("Throttles", [each.metric_throttles() for each in everyone]),
                ],
                [
                    graph(
                        "Lines",
                        [machine.metric_started(), machine.metric_succeeded(), machine.metric_failed()],
                    ),
                    graph("Reactor failures", [failures.metric_approximate_number_of_messages_visible()]),
                ],
            ],
        )
