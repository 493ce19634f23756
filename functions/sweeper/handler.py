"""Kicks what is due, and holds tasks and sandboxes against each other, every minute; and takes on a build of an image
when CodeBuild tells of its end.
"""

from dataclasses import asdict
from typing import Any

from aws_lambda_powertools import Logger, Metrics, Tracer
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext
from nodus_core.aws.image_builds import named
from nodus_core.bootstrap import core
from nodus_core.kernel.errors import NodusError

from functions.sweeper.env import Environment

logger = Logger()
tracer = Tracer()
metrics = Metrics()


@tracer.capture_lambda_handler(capture_response=False)
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """One sweep: at most two passes over the index of due rows, and one over the cluster's tasks.

    Of an event of CodeBuild one look at its build, and nothing else.
    """
    if event.get("source") == "aws.codebuild":
        return _build_ended(event["detail"])
    sweep = core(Environment).sweeper.sweep(lambda: context.get_remaining_time_in_millis() / 1000)
    metrics.add_metric(name="LinesKicked", unit=MetricUnit.Count, value=sweep.kicked)
    metrics.add_metric(name="LinesNotKicked", unit=MetricUnit.Count, value=sweep.failed)
    metrics.add_metric(name="SweepsCutShort", unit=MetricUnit.Count, value=int(not sweep.finished))
    metrics.add_metric(name="OrphansStopped", unit=MetricUnit.Count, value=sweep.tasks.stopped)
    metrics.add_metric(name="WarmSandboxesStarted", unit=MetricUnit.Count, value=sweep.pool.started)
    metrics.add_metric(name="WarmSandboxesNotSeenTo", unit=MetricUnit.Count, value=sweep.pool.failed)
    metrics.add_metric(name="LostTasksNoticed", unit=MetricUnit.Count, value=sweep.tasks.missed)
    metrics.add_metric(name="TasksNotSeenTo", unit=MetricUnit.Count, value=sweep.tasks.failed)
    metrics.add_metric(name="TaskLooksCutShort", unit=MetricUnit.Count, value=int(not sweep.tasks.finished))
    logger.info("swept", **asdict(sweep))
    return asdict(sweep)


def _build_ended(detail: dict[str, Any]) -> dict[str, Any]:
    """Looks at the build that an event is about. A look that fails is no error: the next sweep does the same."""
    build = named(detail)
    if build is not None:
        try:
            core(Environment).builds.look(build)
        except NodusError as error:
            logger.warning("build %s is looked at again by the next sweep: %s", build, error)
    metrics.add_metric(name="BuildsHeard", unit=MetricUnit.Count, value=int(build is not None))
    logger.info("looked", build=build)
    return {"build": build}
