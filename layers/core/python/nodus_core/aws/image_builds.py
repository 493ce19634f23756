"""Images built by CodeBuild into ECR (decision 29). Nothing of this has run on AWS: requests are tested by their shapes.

A build runs a stranger's shell as root in a container of its machine. What it may do there is its project's role: to
write into repositories of images, and to read the catalogue's.
"""

import json
import logging
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from nodus_core.aws.ecr import EcrRegistry
from nodus_core.aws.failures import code_of, translated
from nodus_core.journal.builder import BuildOrder, BuildPhase, BuildReport
from nodus_core.kernel.errors import RetryableError, TerminalError
from nodus_core.kernel.ids import digest
from nodus_core.sandboxes.recipes import dockerfile, packed

log = logging.getLogger(__name__)

MOST_BYTES = 10 * 1024**3
"""Of an image: a task of Fargate's has 20 GiB of disk for the image and all that is written."""

MOST_LINES = 40
"""Lines of a build's log that are read, the last ones."""

NAME = "NODUS_BUILD"
"""The variable that names a build: its events carry it."""

_FOLDER = "/tmp/nodus"  # noqa: S108 - of the build's own machine, which has one build in all its life

_PHASES: dict[str, BuildPhase] = {
    "IN_PROGRESS": "running",
    "SUCCEEDED": "completed",
    "FAILED": "failed",
    "TIMED_OUT": "timed-out",
    "STOPPED": "stopped",
    "FAULT": "missing",
}


@dataclass(frozen=True)
class BuilderPlace:
    """CodeBuild's project, where its images go (`HOST/PREFIX`), and the platform that they are for (`linux/amd64`)."""

    project: str
    repositories: str
    platform: str

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "BuilderPlace | None":
        """From the variables of docs/protocols.md §5; None where the deployment builds nothing."""
        project = environment.get("NODUS_IMAGE_PROJECT")
        if not project:
            return None
        return cls(project, environment["NODUS_IMAGE_REPOSITORIES"], environment["NODUS_IMAGE_PLATFORM"])

    @property
    def host(self) -> str:
        return self.repositories.partition("/")[0]

    def name(self, repository: str) -> str:
        """What ECR calls a repository."""
        return f"{self.repositories.partition('/')[2]}/{repository}"


class CodeBuildImages:
    """`ImageBuilder` of one project. The clients are botocore's, for CodeBuild, ECR and CloudWatch Logs."""

    def __init__(self, codebuild: Any, ecr: Any, logs: Any, place: BuilderPlace) -> None:
        self._codebuild = codebuild
        self._ecr = ecr
        self._logs = logs
        self._place = place

    def start(self, order: BuildOrder, token: str) -> str:
        spec = json.dumps(build_spec(order, self._place))
        with translated(f"starting build {order.id}"):
            self._make_repository(order.repository)
            try:
                answer = self._codebuild.start_build(
                    projectName=self._place.project,
                    # With what is asked: CodeBuild refuses a token that comes again with other words, as those of the
                    # next release may be.
                    idempotencyToken=digest(f"{token} {spec}"),
                    buildspecOverride=spec,
                    environmentVariablesOverride=[{"name": NAME, "value": order.id, "type": "PLAINTEXT"}],
                )
            except ClientError as error:
                if code_of(error) != "AccountLimitExceededException":
                    raise
                raise RetryableError(f"as many builds run as may: {error}") from error
        return str(answer["build"]["id"])

    def state(self, build: str) -> BuildReport:
        with translated(f"asking for build {build}"):
            found = self._codebuild.batch_get_builds(ids=[build])["builds"]
        if not found:
            return BuildReport("missing")
        status = str(found[0]["buildStatus"])
        phase = _PHASES.get(status)
        if phase is None:
            raise TerminalError(f"build {build} has the status {status!r}, which this release does not know")
        if phase in ("running", "completed"):
            return BuildReport(phase)
        return BuildReport(phase, _why(found[0]) or f"CodeBuild says {status}.", self._tail(found[0]))

    def stop(self, build: str) -> None:
        with translated(f"stopping build {build}"):
            try:
                self._codebuild.stop_build(id=build)
            except ClientError as error:
                if code_of(error) != "ResourceNotFoundException":
                    raise

    def made(self, repository: str, build: str) -> str:
        name, host = self._place.name(repository), self._place.host
        return f"{host}/{name}@{EcrRegistry(self._ecr).digest(name, tag_of(build), host)}"

    def holds(self, repository: str, image: str) -> bool:
        try:
            EcrRegistry(self._ecr).digest(self._place.name(repository), image, self._place.host)
        except TerminalError as error:
            if isinstance(error.__cause__, ClientError) and code_of(error.__cause__).endswith(
                "NotFoundException"
            ):
                return False
            raise
        return True

    def remove(self, repository: str) -> None:
        name = self._place.name(repository)
        with translated(f"removing repository {name}"):
            try:
                self._ecr.delete_repository(repositoryName=name, force=True)
            except ClientError as error:
                if code_of(error) != "RepositoryNotFoundException":
                    raise

    def _make_repository(self, repository: str) -> None:
        try:
            self._ecr.create_repository(
                repositoryName=self._place.name(repository),
                # A tag is a build's: whoever has pushed under it first has made that build's image.
                imageTagMutability="IMMUTABLE",
            )
        except ClientError as error:
            if code_of(error) != "RepositoryAlreadyExistsException":
                raise

    def _tail(self, build: Mapping[str, Any]) -> str:
        """The end of a build's log; empty where there is none. It is an explanation, so its loss is no failure."""
        where = build.get("logs", {})
        group, stream = where.get("groupName"), where.get("streamName")
        if not group or not stream:
            return ""
        try:
            with translated(f"reading the log of build {build['id']}"):
                events = self._logs.get_log_events(
                    logGroupName=group, logStreamName=stream, limit=MOST_LINES, startFromHead=False
                )["events"]
        except (RetryableError, TerminalError):
            log.exception("the end of a build is told without its log")
            return "(its log cannot be read)"
        return "".join(str(event["message"]) for event in events)


def tag_of(build: str) -> str:
    """The tag of a build's image: CodeBuild's own id, without the project."""
    return build.rpartition(":")[2]


def build_spec(order: BuildOrder, place: BuilderPlace) -> dict[str, Any]:
    """What CodeBuild runs. Nothing that people have written stands in a line of shell: their text is packed.

    One phase, so that nothing is pushed when something before it failed.
    """
    base, setup = packed(dockerfile(order.base)), packed(order.setup)
    # By CodeBuild's own word on which build this is, the same as `tag_of`.
    image = f'"{place.host}/{place.name(order.repository)}:${{CODEBUILD_BUILD_ID##*:}}"'
    login = f"docker login --username AWS --password-stdin {shlex.quote(place.host)}"
    size = f"$(docker image inspect --format '{{{{.Size}}}}' {image})"
    too_large = f"the image has more than {MOST_BYTES} bytes, which no sandbox has room for"
    return {
        "version": "0.2",
        "env": {"shell": "bash", "variables": {"DOCKER_BUILDKIT": "1", "BUILDKIT_PROGRESS": "plain"}},
        "phases": {
            "build": {
                "commands": [
                    f"mkdir -p {_FOLDER}",
                    f"printf %s '{base}' | base64 --decode | gzip --decompress > {_FOLDER}/Dockerfile",
                    f"printf %s '{setup}' | base64 --decode | gzip --decompress > {_FOLDER}/setup",
                    f"aws ecr get-login-password | {login}",
                    f"docker build --platform {shlex.quote(place.platform)} --tag {image} {_FOLDER}",
                    f"[ {size} -le {MOST_BYTES} ] || {{ echo '{too_large}'; false; }}",
                    f"docker push --quiet {image}",
                ]
            }
        },
    }


def named(detail: Mapping[str, Any]) -> str | None:
    """Which build an event of CodeBuild is about, by our name of it; None: it is none of ours."""
    environment: Any = detail.get("additional-information", {}).get("environment", {})
    for variable in environment.get("environment-variables", []):
        if variable.get("name") == NAME:
            return str(variable.get("value"))
    return None


def _why(build: Mapping[str, Any]) -> str:
    """What CodeBuild says of the phases that went wrong."""
    said = [
        str(context["message"])
        for phase in build.get("phases", [])
        for context in phase.get("contexts") or []
        if context.get("message")
    ]
    return "; ".join(said)
