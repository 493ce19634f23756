"""Images built by CodeBuild: what is asked of it, what its answers mean, and that no shell misreads a setup.

CodeBuild's requests are compared with botocore's own model of them; moto's CodeBuild knows no tokens, no overrides and
no failures. ECR is moto's. The lines of a build are run by bash, with stand-ins for `aws` and `docker`.
"""

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from botocore.stub import ANY, Stubber
from nodus_core.aws.image_builds import BuilderPlace, CodeBuildImages, build_spec, named, tag_of
from nodus_core.journal.builder import BuildOrder, BuildReport
from nodus_core.kernel.errors import RetryableError, TerminalError
from nodus_core.kernel.ids import digest
from nodus_core.sandboxes.recipes import MOST_PACKED, packed

HOST = "123456789012.dkr.ecr.eu-central-1.amazonaws.com"
PLACE = BuilderPlace("nodus-environment-images", f"{HOST}/nodus/images", "linux/amd64")
REPOSITORY = "acme/web/environmentimage-1"
ORDER = BuildOrder(
    "environmentimage-1-2",
    f"public.ecr.aws/x/python@sha256:{'b' * 64}",
    "apt-get install -y figlet",
    REPOSITORY,
)
NUMBER = "nodus-environment-images:8745a7a9-c340-456a-9166-edf953571b00"
LONGEST_SPEC = 25_600
"""Characters of a build specification that CodeBuild takes."""

Stub = Callable[[str], tuple[Any, Stubber]]


def builder(stub: Stub, **prepared: Callable[[Stubber], None]) -> CodeBuildImages:
    clients = {}
    for service in ("codebuild", "ecr", "logs"):
        client, answers = stub(service)
        prepared.get(service, lambda answers: None)(answers)
        clients[service] = client
    return CodeBuildImages(clients["codebuild"], clients["ecr"], clients["logs"], PLACE)


def makes_repository(answers: Stubber) -> None:
    answers.add_response(
        "create_repository",
        {},
        {"repositoryName": f"nodus/images/{REPOSITORY}", "imageTagMutability": "IMMUTABLE"},
    )


@pytest.mark.req("NODQ-104")
def test_a_build_is_started_under_its_token_into_a_repository_of_its_own(stub: Stub) -> None:
    spec = json.dumps(build_spec(ORDER, PLACE))

    def started(answers: Stubber) -> None:
        answers.add_response(
            "start_build",
            {"build": {"id": NUMBER}},
            {
                "projectName": "nodus-environment-images",
                "idempotencyToken": digest(f"token {spec}"),
                "buildspecOverride": spec,
                "environmentVariablesOverride": [
                    {"name": "NODUS_BUILD", "value": ORDER.id, "type": "PLAINTEXT"}
                ],
            },
        )

    assert builder(stub, codebuild=started, ecr=makes_repository).start(ORDER, "token") == NUMBER


@pytest.mark.parametrize(
    ("code", "status", "expected"),
    [
        ("AccountLimitExceededException", 400, RetryableError),
        ("ThrottlingException", 400, RetryableError),
        ("InternalFailure", 500, RetryableError),
        ("InvalidInputException", 400, TerminalError),
        ("ResourceNotFoundException", 400, TerminalError),
        ("AccessDeniedException", 400, TerminalError),
    ],
)
def test_a_start_that_fails_says_whether_to_try_again(
    stub: Stub, code: str, status: int, expected: type[Exception]
) -> None:
    def refuses(answers: Stubber) -> None:
        answers.add_client_error("start_build", code, http_status_code=status)

    with pytest.raises(expected):
        builder(stub, codebuild=refuses, ecr=makes_repository).start(ORDER, "token")


def test_a_repository_that_is_there_is_used(stub: Stub) -> None:
    def is_there(answers: Stubber) -> None:
        answers.add_client_error("create_repository", "RepositoryAlreadyExistsException")

    def started(answers: Stubber) -> None:
        answers.add_response("start_build", {"build": {"id": NUMBER}})

    assert builder(stub, codebuild=started, ecr=is_there).start(ORDER, "token") == NUMBER


def told(
    stub: Stub, build: dict[str, Any] | None, logs: Callable[[Stubber], None] | None = None
) -> BuildReport:
    def answered(answers: Stubber) -> None:
        found = {"builds": [{"id": NUMBER, **build}]} if build else {"builds": [], "buildsNotFound": [NUMBER]}
        answers.add_response("batch_get_builds", found, {"ids": [NUMBER]})

    return builder(stub, codebuild=answered, **({"logs": logs} if logs else {})).state(NUMBER)


FAILED = {
    "buildStatus": "FAILED",
    "phases": [
        {"phaseType": "SUBMITTED", "phaseStatus": "SUCCEEDED"},
        {
            "phaseType": "BUILD",
            "phaseStatus": "FAILED",
            "contexts": [{"statusCode": "X", "message": "exit status 1"}],
        },
    ],
    "logs": {"groupName": "/aws/codebuild/nodus-environment-images", "streamName": "8745"},
}


@pytest.mark.parametrize(
    ("status", "phase"),
    [
        ("IN_PROGRESS", "running"),
        ("SUCCEEDED", "completed"),
        ("TIMED_OUT", "timed-out"),
        ("STOPPED", "stopped"),
        ("FAULT", "missing"),
    ],
)
def test_how_a_build_is(stub: Stub, status: str, phase: str) -> None:
    report = told(stub, {"buildStatus": status})
    assert report.phase == phase
    assert (report.why == "") == (phase in ("running", "completed"))


def test_a_build_that_nobody_knows_is_missing_and_a_word_that_is_new_is_an_error(stub: Stub) -> None:
    assert told(stub, None) == BuildReport("missing")
    with pytest.raises(TerminalError, match="PONDERING"):
        told(stub, {"buildStatus": "PONDERING"})


def test_a_failed_build_tells_its_phase_and_the_end_of_its_log(stub: Stub) -> None:
    def said(answers: Stubber) -> None:
        answers.add_response(
            "get_log_events",
            {"events": [{"message": "E: Unable to locate package\n"}, {"message": "exit 100\n"}]},
            {
                "logGroupName": "/aws/codebuild/nodus-environment-images",
                "logStreamName": "8745",
                "limit": ANY,
                "startFromHead": False,
            },
        )

    report = told(stub, FAILED, said)
    assert report == BuildReport("failed", "exit status 1", "E: Unable to locate package\nexit 100\n")


def test_a_log_that_cannot_be_read_hides_no_failure(stub: Stub) -> None:
    def silent(answers: Stubber) -> None:
        answers.add_client_error("get_log_events", "ResourceNotFoundException", http_status_code=400)

    report = told(stub, FAILED, silent)
    assert (report.phase, "cannot be read" in report.log) == ("failed", True)


def test_an_unknown_build_is_stopped_already(stub: Stub) -> None:
    def unknown(answers: Stubber) -> None:
        answers.add_client_error("stop_build", "ResourceNotFoundException", expected_params={"id": NUMBER})

    builder(stub, codebuild=unknown).stop(NUMBER)


@pytest.mark.req("NOD-448")
def test_the_image_of_a_build_is_found_by_its_tag_and_its_repository_goes_whole(
    moto: Callable[..., Any], stub: Stub
) -> None:
    ecr = moto("ecr")
    images = CodeBuildImages(None, ecr, None, PLACE)
    with pytest.raises(TerminalError, match="no image"):
        images.made(REPOSITORY, NUMBER)
    assert not images.holds(REPOSITORY, f"sha256:{'c' * 64}")
    images._make_repository(REPOSITORY)
    images._make_repository(REPOSITORY)
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.docker.distribution.manifest.v2+json",
        "config": {
            "mediaType": "application/vnd.docker.container.image.v1+json",
            "size": 1,
            "digest": "sha256:0",
        },
        "layers": [],
    }
    ecr.put_image(
        repositoryName=f"nodus/images/{REPOSITORY}",
        imageManifest=json.dumps(manifest),
        imageTag=tag_of(NUMBER),
    )
    reference = images.made(REPOSITORY, NUMBER)
    place, _, made = reference.partition("@")
    assert place == f"{HOST}/nodus/images/{REPOSITORY}"
    assert images.holds(REPOSITORY, made)
    assert not images.holds(REPOSITORY, f"sha256:{'c' * 64}")
    images.remove(REPOSITORY)
    images.remove(REPOSITORY)
    assert not images.holds(REPOSITORY, made)


def test_a_registry_that_is_silent_holds_nothing_for_certain(stub: Stub) -> None:
    for code, status, expected in (
        ("ServerException", 500, RetryableError),
        ("AccessDenied", 400, TerminalError),
    ):

        def silent(answers: Stubber, code: str = code, status: int = status) -> None:
            answers.add_client_error("describe_images", code, http_status_code=status)

        with pytest.raises(expected):
            builder(stub, ecr=silent).holds(REPOSITORY, f"sha256:{'c' * 64}")


def test_an_event_names_its_build_or_none_of_ours() -> None:
    variables = [{"name": "A", "value": "b"}, {"name": "NODUS_BUILD", "value": "uid-1", "type": "PLAINTEXT"}]
    assert named({"additional-information": {"environment": {"environment-variables": variables}}}) == "uid-1"
    assert named({"additional-information": {"environment": {"environment-variables": []}}}) is None
    assert named({}) is None


def test_a_deployment_that_builds_nothing_has_no_builder() -> None:
    assert BuilderPlace.from_environment({"NODUS_IMAGE_PROJECT": ""}) is None
    assert BuilderPlace.from_environment({}) is None
    environment = {
        "NODUS_IMAGE_PROJECT": PLACE.project,
        "NODUS_IMAGE_REPOSITORIES": PLACE.repositories,
        "NODUS_IMAGE_PLATFORM": PLACE.platform,
    }
    assert BuilderPlace.from_environment(environment) == PLACE


# --- what a build runs ---

DOCKER = """#!/bin/bash
printf '%s\\n' "$*" >> "$RECORD/docker"
case "$1 $2" in
  "image inspect") echo "${SIZE:-1000}" ;;
  "login --username") cat > "$RECORD/password" ;;
  "build --platform") cp -r "${@: -1}" "$RECORD/context"; exit "${BUILD_EXIT:-0}" ;;
esac
"""
AWS = '#!/bin/bash\necho "$*" >> "$RECORD/aws"; echo pass-word\n'


def run(folder: Path, order: BuildOrder, **environment: str) -> subprocess.CompletedProcess[str]:
    """The lines of a build, as CodeBuild runs them: each only when the one before it has ended well."""
    binaries, record = folder / "bin", folder / "record"
    for each in (binaries, record):
        each.mkdir(exist_ok=True)
    for name, script in (("docker", DOCKER), ("aws", AWS)):
        (binaries / name).write_text(script)
        (binaries / name).chmod(0o755)
    lines = build_spec(order, PLACE)["phases"]["build"]["commands"]
    script = "\n".join(line.replace("/tmp/nodus", str(folder / "work")) + " || exit 1" for line in lines)
    return subprocess.run(
        ["bash", "-c", script],
        env={
            "PATH": os.pathsep.join((str(binaries), "/usr/bin", "/bin")),
            "RECORD": str(record),
            "CODEBUILD_BUILD_ID": NUMBER,
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.req("NODQ-104")
@pytest.mark.parametrize(
    "setup",
    [
        "apt-get install -y figlet",
        "echo 'a'; echo \"b\"; $(touch /tmp/x) `id`\n\n# end without a line's end",
        "' ; docker push evil ; '",
        "'\nEOF\nRUN id\nFROM scratch\n",
        "${CODEBUILD_BUILD_ID}%s\\n\\\\ é 日本 \x01",
        "x" * 60_000,
    ],
)
def test_a_setup_comes_to_the_build_byte_by_byte_whatever_stands_in_it(tmp_path: Path, setup: str) -> None:
    done = run(tmp_path, replace(ORDER, setup=setup))
    assert done.returncode == 0, done.stderr
    record = tmp_path / "record"
    assert (record / "context" / "setup").read_bytes() == setup.encode()
    assert (record / "context" / "Dockerfile").read_text() == (
        f"FROM {ORDER.base}\nUSER 0:0\nWORKDIR /\n"
        "RUN --mount=type=bind,source=setup,target=/run/nodus-setup /bin/sh /run/nodus-setup\n"
    )
    image = f"{HOST}/nodus/images/{REPOSITORY}:{tag_of(NUMBER)}"
    assert (record / "docker").read_text().splitlines() == [
        f"login --username AWS --password-stdin {HOST}",
        f"build --platform linux/amd64 --tag {image} {tmp_path}/work",
        f"image inspect --format {{{{.Size}}}} {image}",
        f"push --quiet {image}",
    ]
    assert (record / "password").read_text() == "pass-word\n"


@pytest.mark.parametrize(
    ("environment", "said"), [({"BUILD_EXIT": "1"}, ""), ({"SIZE": "99999999999"}, "has more than")]
)
def test_nothing_is_pushed_of_a_build_that_fails_or_is_too_large(
    tmp_path: Path, environment: dict[str, str], said: str
) -> None:
    done = run(tmp_path, ORDER, **environment)
    assert done.returncode != 0
    assert said in done.stdout
    asked = (tmp_path / "record" / "docker").read_text().splitlines()
    assert not [line for line in asked if line.startswith("push")]


def test_the_largest_order_fits_into_a_build_specification() -> None:
    order = BuildOrder(
        "x" * 80, f"{'h' * 100}/{'r' * 400}@sha256:{'b' * 64}", "", "/".join(("o" * 63, "p" * 63, "u" * 50))
    )
    empty = len(json.dumps(build_spec(order, PLACE))) - len(packed(""))
    assert empty + MOST_PACKED <= LONGEST_SPEC
