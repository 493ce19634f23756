"""The clock behind the guarantee that nothing unfinished is forgotten, and what wakes the sweeper in between."""

# jsii's classes name parameters differently from its protocols (`_id`, `id`), which a type checker refuses;
# jsii itself checks every argument's type whenever the app is built.
# pyright: reportArgumentType=false

from aws_cdk import Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from constructs import Construct

from infra.constructs.function import NodusFunction

EVERY = Duration.minutes(1)
ENDED = ["SUCCEEDED", "FAILED", "FAULT", "STOPPED", "TIMED_OUT"]


class SweeperSchedule(Construct):
    """Invokes the sweeper every minute. A missed or failed minute is not repeated: the next sweep sees the same rows.

    Args:
        sweeper: the function.
        builder: name of the CodeBuild project whose builds' ends it hears at once; None: there is none.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, sweeper: NodusFunction, builder: str | None = None
    ) -> None:
        super().__init__(scope, construct_id)
        # Lambda's own queue would else keep and repeat sweeps for six hours, beside those of later minutes.
        sweeper.function.configure_async_invoke(retry_attempts=0, max_event_age=EVERY)
        events.Rule(
            self,
            "EveryMinute",
            description="Sweep what is due",
            schedule=events.Schedule.rate(EVERY),
            targets=[targets.LambdaFunction(sweeper.function, retry_attempts=0)],
        )
        if builder is not None:
            events.Rule(
                self,
                "BuildEnded",
                description="A build of a project's image has ended",
                event_pattern=events.EventPattern(
                    source=["aws.codebuild"],
                    detail_type=["CodeBuild Build State Change"],
                    detail={"project-name": [builder], "build-status": ENDED},
                ),
                targets=[targets.LambdaFunction(sweeper.function, retry_attempts=0)],
            )
