"""What the functions may do, in words; one call adds one narrow statement to one function's role."""

from aws_cdk import Stack
from aws_cdk import aws_stepfunctions as sfn

from infra.constructs.environment_builds import BuildNames
from infra.constructs.event_bus import EventBus
from infra.constructs.function import NodusFunction
from infra.constructs.journal_table import JournalTable
from infra.constructs.kick_schedules import KickSchedules
from infra.constructs.link_api import LinkApi
from infra.constructs.providers_secret import ProvidersSecret
from infra.constructs.sandbox_cluster import SandboxCluster

_SECRETS = (
    "A Secret of a project is named by organization, project and uid; only those lie three levels deep."
)

_TASKS = "A task's id is given when it starts; these are the tasks of one cluster."

# A transaction needs the right to each of its parts, ConditionCheckItem among them. No Scan: whatever is
# read is read by its key, and no table-level operation.
JOURNAL_ACTIONS = (
    "dynamodb:BatchGetItem",
    "dynamodb:ConditionCheckItem",
    "dynamodb:DeleteItem",
    "dynamodb:GetItem",
    "dynamodb:PutItem",
    "dynamodb:Query",
    "dynamodb:UpdateItem",
)


def use_journal(function: NodusFunction, journal: JournalTable) -> None:
    """Items of the journal, in every way a commit or a bounded read needs."""
    function.allow(*JOURNAL_ACTIONS, on=[journal.table.table_arn])


def read_due(function: NodusFunction, journal: JournalTable) -> None:
    """The index of what is due."""
    function.allow("dynamodb:Query", on=[journal.due_index_arn])


def use_payloads(function: NodusFunction, bucket_arn: str, *, remove: bool = False) -> None:
    """Payloads, read and written.

    Listing lets S3 answer 404 for a payload that is gone; without it the answer is 403, which would read as
    a fault of ours instead of an expired result.

    Args:
        bucket_arn: the bucket.
        remove: also delete, for whoever removes a run.
    """
    objects = ("s3:GetObject", "s3:PutObject", *(("s3:DeleteObject",) if remove else ()))
    function.allow(
        *objects,
        on=[f"{bucket_arn}/*"],
        because="A payload's key is the hash of its content, not known before.",
    )
    function.allow("s3:ListBucket", on=[bucket_arn])


def start_lines(function: NodusFunction, machine: sfn.StateMachine) -> None:
    """Executions of the line machine."""
    function.allow("states:StartExecution", on=[machine.state_machine_arn])


def schedule_kicks(function: NodusFunction, schedules: KickSchedules) -> None:
    """One-off schedules of our group, which may do nothing but invoke the reactor."""
    # MiniStack judges a schedule by its name in the default group, whatever its group. On AWS the second ARN lets
    # the function make a schedule there, which could invoke nothing else either: it can pass one role only.
    function.allow(
        "scheduler:CreateSchedule",
        on=schedules.schedule_arns,
        because="A schedule's name is the line's id, not known before; these are those of one group.",
    )
    function.allow(
        "iam:PassRole",
        on=[schedules.role.role_arn],
        when={"StringEquals": {"iam:PassedToService": "scheduler.amazonaws.com"}},
    )


def ring_bells(function: NodusFunction, link_api: LinkApi) -> None:
    """Open connections, of sandboxes and of people: ring them, and write to them."""
    function.allow(
        "execute-api:ManageConnections",
        on=link_api.connection_arns(),
        because="A connection's id is API Gateway's, given when it opens; this is one stage of one API.",
    )


def publish_events(function: NodusFunction, bus: EventBus) -> None:
    """Events on our bus."""
    function.allow("events:PutEvents", on=[bus.bus.event_bus_arn])


def read_providers(function: NodusFunction, providers: ProvidersSecret) -> None:
    """The model providers' keys."""
    function.allow("secretsmanager:GetSecretValue", on=[providers.arn])


def write_secrets(function: NodusFunction, secrets_arn: str) -> None:
    """Values of projects' Secrets: kept and removed, never read."""
    function.allow(
        "secretsmanager:CreateSecret",
        "secretsmanager:PutSecretValue",
        on=[secrets_arn],
        because=_SECRETS,
    )
    remove_secrets(function, secrets_arn)


def read_secrets(function: NodusFunction, secrets_arn: str) -> None:
    """Values of projects' Secrets: for calls that are made with them, and for sandboxes that come up."""
    function.allow("secretsmanager:GetSecretValue", on=[secrets_arn], because=_SECRETS)


def use_secrets_key(function: NodusFunction, key_arn: str, *, write: bool = False) -> None:
    """The key of the values of Secrets, where it is not the account's own: by way of Secrets Manager alone."""
    actions = ("kms:Decrypt", *(("kms:GenerateDataKey",) if write else ()))
    via = f"secretsmanager.{Stack.of(function).region}.{Stack.of(function).url_suffix}"
    function.allow(*actions, on=[key_arn], when={"StringEquals": {"kms:ViaService": via}})


def remove_secrets(function: NodusFunction, secrets_arn: str) -> None:
    """Values of projects' Secrets: remove those that nothing names."""
    function.allow("secretsmanager:DeleteSecret", on=[secrets_arn], because=_SECRETS)


def find_images(function: NodusFunction, sandboxes: SandboxCluster) -> None:
    """The digests of the catalogue's images in this account."""
    if sandboxes.has_images and sandboxes.repository_arns:
        function.allow("ecr:DescribeImages", on=sandboxes.repository_arns)


def build_images(function: NodusFunction, builds: BuildNames) -> None:
    """Builds of projects' images, and the repositories that these go to.

    Whoever starts a build says what it runs, under the project's role and no other: that one cannot be passed here.
    """
    function.allow(
        "codebuild:StartBuild", "codebuild:BatchGetBuilds", "codebuild:StopBuild", on=[builds.project_arn]
    )
    function.allow(
        "ecr:CreateRepository",
        "ecr:DeleteRepository",
        "ecr:DescribeImages",
        on=[builds.repositories_arn],
        because="A repository is made for each EnvironmentImage; these are those of projects and no others.",
    )
    function.allow(
        "logs:GetLogEvents",
        on=[builds.log_streams_arn],
        because="A stream of the log is named by its build, not known before.",
    )


def run_sandboxes(function: NodusFunction, sandboxes: SandboxCluster) -> None:
    """Sandbox tasks: start with tags, keep those of our cluster; pass the one execution role.

    Where sandboxes are made of images, also: define a task for each of them.
    """
    keep_sandboxes(function, sandboxes)
    cluster = {"ArnEquals": {"ecs:cluster": sandboxes.cluster.attr_arn}}
    function.allow(
        "ecs:RunTask",
        on=sandboxes.task_definition_arns,
        when=cluster,
        because="Each deployment that changes the definition makes a revision, and each image a family below this one's "
        "name.",
    )
    if sandboxes.has_images:
        function.allow(
            "ecs:DescribeTaskDefinition",
            "ecs:RegisterTaskDefinition",
            on=["*"],
            because="Neither knows a resource; what is registered can pass one role only, which has no right but to "
            "pull images and to write the sandboxes' log, and runs in our cluster alone.",
        )
    function.allow(
        "ecs:TagResource",
        on=[sandboxes.task_arns],
        when={"StringEquals": {"ecs:CreateAction": "RunTask"}},
        because=_TASKS,
    )
    # As below, of MiniStack.
    function.allow("ecs:RunTask", on=[sandboxes.cluster.attr_arn])
    function.allow(
        "iam:PassRole",
        on=[sandboxes.execution_role.role_arn],
        when={"StringEquals": {"iam:PassedToService": "ecs-tasks.amazonaws.com"}},
    )


def keep_sandboxes(function: NodusFunction, sandboxes: SandboxCluster) -> None:
    """Sandbox tasks of our cluster: list them, look at them and stop them."""
    cluster = {"ArnEquals": {"ecs:cluster": sandboxes.cluster.attr_arn}}
    function.allow(
        "ecs:DescribeTasks", "ecs:StopTask", on=[sandboxes.task_arns], when=cluster, because=_TASKS
    )
    function.allow(
        "ecs:ListTasks",
        on=["*"],
        when=cluster,
        because="ecs:ListTasks knows neither task nor cluster as its resource; its condition limits it.",
    )
    # MiniStack judges these actions by the cluster's ARN and knows no ecs:cluster. AWS never asks about a cluster
    # for any of them, so that this statement allows nothing there.
    function.allow("ecs:ListTasks", "ecs:DescribeTasks", "ecs:StopTask", on=[sandboxes.cluster.attr_arn])


def tag_sandboxes(function: NodusFunction, sandboxes: SandboxCluster) -> None:
    """Tags of tasks of our cluster that run already: a machine of the pool has become somebody's."""
    function.allow("ecs:TagResource", on=[sandboxes.task_arns], because=_TASKS)
