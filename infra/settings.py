"""What a deployment may choose, read once from the CDK context (`cdk deploy -c lineConcurrency=0`)."""

import json
from decimal import Decimal
from typing import Annotated, Literal, Self

from constructs import Node
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from infra.gpu_types import GPU_TYPES
from layers.deps.build import HOST, RUNNING

MAIN_STAGE = "main"

ACCOUNTS_KEY = "alias/aws/secretsmanager"
"""The KMS key that AWS keeps for the Secrets Manager of each account; no right is needed to use it there."""

RetentionDays = Literal[1, 3, 5, 7, 14, 30, 60, 90, 180, 365]
Architecture = Literal["x86_64", "arm64"]


def _with_price(value: str) -> str:
    if value and value not in GPU_TYPES:
        listed = ", ".join(GPU_TYPES)
        raise ValueError(
            f"no price is known of an hour of {value}: take one of {listed}, or add it to infra/gpu_types.py"
        )
    return value


class Settings(BaseModel):
    """Settings of one deployment; each may be given as context under its camelCase name.

    Attributes:
        stage: names the deployment; several may live in one account. `main` gets the bare names.
        python_version: the functions' and the third-party layer's Python.
        architecture: the functions' and the sandboxes' processor.
        line_concurrency: reserved concurrency of `line`, in concurrent invocations; it must stay well below
            the account's (1,000 unless raised) so that waiting lines never starve what wakes them.
            0 reserves nothing, which an account with a small quota needs.
        log_retention_days: how long logs are kept.
        log_level: the functions' log level.
        alarm_email: an address that alarms are sent to; without one they only show on the dashboard.
        warm: provisioned concurrency, in instances, of each of the two functions a caller waits for
            (`api`, `link`); 0 provisions nothing.
        watch_window: seconds that the answer to a watch waits for something to happen; each watcher keeps one
            invocation of `api` busy for so long, again and again. 0 answers at once.
        spot: start sandboxes on Fargate Spot, which is cheaper and may take one away after two minutes'
            notice.
        protect: keep table, payloads and provider keys when the stack is deleted, and refuse the deletion
            of the table.
        sandbox_image: the sandbox's image. `name:tag` without a registry is a repository of this account's
            ECR; with a registry it is used as it is and must be readable without credentials.
        sandbox_images: `registry`: sandboxes are containers, of the catalogue's image, of a project's
            EnvironmentImages, or of any public one, by their digests. `machine`: there are no container images, and a
            sandbox has the tools of the machine that its task runs on (the local cloud).
        runtime_image: the image whose container brings the daemon into an image that has not got it; named like
            `sandbox_image`.
        image_build: add the stack that builds the sandbox image and the runtime's in this account (repositories
            `nodus/agent-tools` and `nodus/sandboxd-runtime`, for another stage below `nodus-STAGE/`), and, where
            sandboxes are containers, the EnvironmentImages of projects that have a setup (below `nodus/images/`).
        warm_sandboxes: sandboxes of the default settings that are started ahead, so that one is ready at once. Each costs
            what a sandbox costs for as long as it waits; 0 starts none.
        gpu: the EC2 instance type that sandboxes with GPUs run on (`g5.xlarge`; those of `infra/gpu_types.py`). Empty:
            there are none (`GPUUnavailable`). It adds a NAT gateway, which costs by the hour; the machines themselves are
            there while a sandbox wants one. Needs sandboxes that are containers, and x86.
        gpu_max: how many such machines may run at once.
        gpu_price: US dollars of an hour of one, where it is not that of us-east-1; sandboxes are metered by it. Empty:
            that of `infra/gpu_types.py`.
        throttle_rate: steady requests a second that each API admits.
        throttle_burst: requests that each API admits at once above the steady rate.
        server_names: names of this deployment's API beside AWS's own, separated by commas (a custom domain, with
            `:PORT` where it is not 443): whoever logs in by AWS identity signs for the name that he uses.
        secrets_key: the KMS key that encrypts the values of projects' Secrets: the account's own for Secrets Manager, or
            the ARN of a key of yours, which must let this account use it. It counts for Secrets made from then on.
        github_app: id of the GitHub App by whose installations projects read repositories; its private key stands in the
            providers' secret. Empty: there is none, and projects give tokens.
        git_hosts: names of the hosts beside GitHub that projects may read repositories from, separated by commas.
        git_folder: a folder of bare repositories (`OWNER/NAME.git`) on the machine that runs the functions, which
            projects may read: for a local cloud. Empty: there is none.
        archive_hosts: names of the hosts that runs may take archives from, separated by commas; `*.example.com` for all
            below it, `*` for every public one. Empty: none.
        key_rate: steady requests a second of a bearer key that names no rate of its own.
        key_burst: requests that such a key may make at once.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)

    stage: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,15}$")] = MAIN_STAGE
    python_version: Annotated[str, Field(pattern=r"^3\.1[1-4]$")] = RUNNING
    architecture: Architecture = HOST
    line_concurrency: Annotated[int, Field(ge=0, le=900)] = 100
    log_retention_days: Annotated[RetentionDays, BeforeValidator(int)] = 30
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    alarm_email: Annotated[str, Field(pattern=r"^[^@\s]+@[^@\s]+$")] | None = None
    warm: Annotated[int, Field(ge=0, le=100)] = 0
    watch_window: Annotated[int, Field(ge=0, le=25)] = 25
    spot: bool = False
    protect: bool = True
    sandbox_image: Annotated[str, Field(min_length=1)] = "nodus/agent-tools:latest"
    sandbox_images: Literal["registry", "machine"] = "registry"
    runtime_image: Annotated[str, Field(min_length=1)] = "nodus/sandboxd-runtime:latest"
    image_build: bool = False
    warm_sandboxes: Annotated[int, Field(ge=0, le=100)] = 0
    gpu: Annotated[str, AfterValidator(_with_price)] = ""
    gpu_max: Annotated[int, Field(ge=1, le=100)] = 1
    gpu_price: Annotated[str, Field(pattern=r"^(\d{1,4}(\.\d{1,6})?)?$")] = ""
    throttle_rate: Annotated[int, Field(ge=1)] = 500
    throttle_burst: Annotated[int, Field(ge=1)] = 1000
    server_names: Annotated[str, Field(pattern=r"^([a-z0-9.-]+(:\d+)?(,[a-z0-9.-]+(:\d+)?)*)?$")] = ""
    secrets_key: Annotated[
        str, Field(pattern=rf"^({ACCOUNTS_KEY}|arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{{12}}:key/[\w-]+)$")
    ] = ACCOUNTS_KEY
    github_app: Annotated[str, Field(pattern=r"^[A-Za-z0-9]*$")] = ""
    git_hosts: Annotated[str, Field(pattern=r"^([a-z0-9.-]+(,[a-z0-9.-]+)*)?$")] = ""
    git_folder: Annotated[str, Field(pattern=r"^(/.+)?$")] = ""
    archive_hosts: Annotated[
        str, Field(pattern=r"^((\*|(\*\.)?[a-z0-9.-]+)(,(\*|(\*\.)?[a-z0-9.-]+))*)?$")
    ] = ""
    key_rate: Annotated[int, Field(ge=1, le=1_000)] = 100
    key_burst: Annotated[int, Field(ge=1, le=10_000)] = 200

    @model_validator(mode="after")
    def _gpu_has_containers(self) -> Self:
        if self.gpu and (self.sandbox_images != "registry" or self.architecture != "x86_64"):
            raise ValueError(
                "gpu: its machines run containers (sandboxImages=registry) for x86 (architecture=x86_64)"
            )
        if self.gpu_price and not Decimal(self.gpu_price):
            raise ValueError("gpuPrice: must be more than 0: sandboxes with GPUs are metered by it")
        return self

    @property
    def gpus(self) -> str:
        """What sandboxes may have of GPUs, as `NODUS_GPUS` says it (docs/protocols.md §5)."""
        if not self.gpu:
            return ""
        found = GPU_TYPES[self.gpu]
        price = self.gpu_price or str(found.usd)
        said = {
            "type": self.gpu,
            "count": found.count,
            "cpu": str(found.cpu),
            "memory": str(found.memory),
            "usd": price,
        }
        return json.dumps(said)

    @property
    def builds_environments(self) -> bool:
        """Whether EnvironmentImages with a setup are built here."""
        return self.image_build and self.sandbox_images == "registry"

    @classmethod
    def from_context(cls, node: Node) -> "Settings":
        """Reads the settings that the app's context gives; the rest keeps its default.

        Args:
            node: the app's node.

        Raises:
            pydantic.ValidationError: a value is outside of what its setting allows.
        """
        given = {name: node.try_get_context(name) for name in map(to_camel, cls.model_fields)}
        return cls.model_validate({name: value for name, value in given.items() if value is not None})
