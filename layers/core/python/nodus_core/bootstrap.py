"""The one place where real things are built. A handler calls `core()` once, lazily; tests build their own.

Adapters are imported where they are built: a function pays only for those that it uses.
"""

# ruff: noqa: PLC0415 - see above

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, Protocol

from nodus_core.access.grant import Rate
from nodus_core.access.identities import Identities
from nodus_core.access.signed_calls import Judge, server_name
from nodus_core.conversations.batch_keeping import BatchKeeping
from nodus_core.conversations.build_keeping import BuildKeeping
from nodus_core.conversations.expiry import Expiry
from nodus_core.conversations.images import Images, ImageSources
from nodus_core.conversations.kicks import Kicks
from nodus_core.conversations.loose_values import Reclaim
from nodus_core.conversations.machine import Machine
from nodus_core.conversations.ports import Ports
from nodus_core.conversations.reactions import Reactions
from nodus_core.conversations.shelf import Shelf
from nodus_core.conversations.sources import Allowed
from nodus_core.conversations.sweeper import Sweeper
from nodus_core.conversations.task_sweep import TaskSweep
from nodus_core.conversations.warm_pool import WarmPool
from nodus_core.conversations.worker import Worker
from nodus_core.journal.builder import ImageBuilder
from nodus_core.journal.journal import Journal
from nodus_core.journal.payloads import Payloads
from nodus_core.journal.ports import Clock, Ids, NoCrash, SandboxTasks, Schedules, TaskFleet
from nodus_core.journal.transfers import Transfers
from nodus_core.journal.vault import Vault
from nodus_core.kernel.objects import ObjectKey
from nodus_core.sandboxes.gpus import Gpus
from nodus_core.sandboxes.link import Link
from nodus_core.sandboxes.relay import Relay

if TYPE_CHECKING:
    from nodus_core.aws.bell import WebSocketBell
    from nodus_core.aws.endpoints import Endpoints


NOBODY = ObjectKey("", "", "Sandbox", "warm")
"""In whose name the pool's image is asked for."""


@dataclass(frozen=True)
class Core:
    """Everything that the functions use; each part is built when it is first asked for.

    `environment` holds the variables of docs/protocols.md §5; one that is missing is a KeyError naming it.
    """

    environment: Mapping[str, str]

    @cached_property
    def clock(self) -> Clock:
        from nodus_core.aws.system import SystemClock

        return SystemClock()

    @cached_property
    def ids(self) -> Ids:
        from nodus_core.aws.system import FreshIds

        return FreshIds()

    @cached_property
    def journal(self) -> Journal:
        from nodus_core.aws.clients import dynamodb
        from nodus_core.aws.dynamodb_store import DynamoDbStore

        return Journal(DynamoDbStore(dynamodb(), self.environment["NODUS_TABLE"]), self.ids, NoCrash())

    @cached_property
    def payloads(self) -> Payloads:
        from nodus_core.aws.clients import s3
        from nodus_core.aws.s3_payloads import S3Payloads

        return S3Payloads(s3(), self.environment["NODUS_PAYLOADS"])

    @cached_property
    def transfers(self) -> Transfers:
        from nodus_core.aws.clients import s3
        from nodus_core.aws.s3_transfers import S3Transfers

        return S3Transfers(s3(), self.environment["NODUS_PAYLOADS"])

    @cached_property
    def vault(self) -> Vault:
        from nodus_core.aws.clients import secretsmanager
        from nodus_core.aws.vault import ACCOUNTS_KEY, SecretsManagerVault

        key = self.environment.get("NODUS_SECRETS_KEY", ACCOUNTS_KEY)  # only those that make Secrets have it
        return SecretsManagerVault(secretsmanager(), self.environment["NODUS_SECRETS"], key)

    @cached_property
    def allowed(self) -> Allowed:
        """What the operator lets projects read."""
        return Allowed.from_environment(self.environment)

    @cached_property
    def key_rate(self) -> Rate:
        """Of a bearer key that names none."""
        return Rate(int(self.environment["NODUS_KEY_RATE"]), int(self.environment["NODUS_KEY_BURST"]))

    @cached_property
    def identities(self) -> Identities:
        from nodus_core.aws.sts import StsIdentities

        return StsIdentities()

    @cached_property
    def judge(self) -> Judge:
        """Of signed requests to STS."""
        from nodus_core.aws.clients import endpoint, region
        from nodus_core.aws.endpoints import server_addresses

        addresses = server_addresses(self.environment, region())
        return Judge(frozenset(map(server_name, addresses)), endpoint("sts"))

    @cached_property
    def kicks(self) -> Kicks:
        from nodus_core.aws.clients import stepfunctions
        from nodus_core.aws.executions import StepFunctionsExecutions

        machine = self.environment["NODUS_LINE_MACHINE"]
        return Kicks(self.journal, StepFunctionsExecutions(stepfunctions(), machine), self.clock)

    @cached_property
    def schedules(self) -> Schedules:
        from nodus_core.aws.clients import scheduler
        from nodus_core.aws.schedules import EventBridgeSchedules, SchedulePlace

        return EventBridgeSchedules(scheduler, SchedulePlace.from_environment(self.environment))

    @cached_property
    def images(self) -> ImageSources:
        """What sandboxes are made of (`NODUS_IMAGES`, docs/protocols.md §5)."""
        from nodus_core.aws.clients import ecr
        from nodus_core.aws.ecr import EcrRegistry
        from nodus_core.providers.registries import PublicRegistries

        listed = ImageSources(dict[str, str](json.loads(self.environment["NODUS_IMAGES"])))
        if not listed.has_images:
            return listed
        builds = self.environment.get("NODUS_IMAGE_REPOSITORIES") or None
        return ImageSources(listed.catalogue, EcrRegistry(ecr()), PublicRegistries(), builds)

    @cached_property
    def builder(self) -> ImageBuilder | None:
        """Who builds images; None: nobody does here."""
        from nodus_core.aws.image_builds import BuilderPlace, CodeBuildImages

        place = BuilderPlace.from_environment(self.environment)
        if place is None:
            return None
        from nodus_core.aws.clients import codebuild, ecr_of_builds, logs

        return CodeBuildImages(codebuild(), ecr_of_builds(), logs(), place)

    @cached_property
    def builds(self) -> BuildKeeping:
        return BuildKeeping(self.shelf, self.builder)

    @cached_property
    def shelf(self) -> Shelf:
        """Of use cases that serve nobody's call."""
        return Shelf(self.journal, self.payloads, self.clock)

    @cached_property
    def gpus(self) -> Gpus:
        """What sandboxes may have of GPUs."""
        return Gpus.from_json(self.environment["NODUS_GPUS"])

    @cached_property
    def link(self) -> Link:
        return Link(self.journal, self.payloads, self.clock, self.vault)

    @cached_property
    def bell(self) -> "WebSocketBell":
        from nodus_core.aws.bell import WebSocketBell
        from nodus_core.aws.clients import connections

        return WebSocketBell(connections(self.endpoints.connections))

    @cached_property
    def endpoints(self) -> "Endpoints":
        from nodus_core.aws.clients import region
        from nodus_core.aws.endpoints import Endpoints

        return Endpoints.from_environment(self.environment, region())

    @cached_property
    def relay(self) -> Relay:
        return Relay(self.journal, self.bell, self.clock)

    @cached_property
    def reactions(self) -> Reactions:
        from nodus_core.aws.clients import events
        from nodus_core.aws.events import EventBridgeEvents

        return Reactions(self.kicks, EventBridgeEvents(events(), self.environment["NODUS_BUS"]))

    @cached_property
    def sweeper(self) -> Sweeper:
        values = Reclaim(self.journal, self.vault, self.clock)
        expiry = Expiry(self.journal, self.payloads, self.clock)
        batches = BatchKeeping(self.shelf)
        return Sweeper(self.kicks, self.task_sweep, self.warm_pool, values, expiry, batches, self.builds)

    @cached_property
    def task_sweep(self) -> TaskSweep:
        return TaskSweep(self.fleet, self.kicks)

    @cached_property
    def fleet(self) -> TaskFleet:
        from nodus_core.aws.clients import ecs_asked_once
        from nodus_core.aws.task_fleet import EcsTaskFleet

        cluster, definition = self.environment["NODUS_CLUSTER"], self.environment["NODUS_TASK_DEFINITION"]
        return EcsTaskFleet(ecs_asked_once(), cluster, definition)

    @cached_property
    def warm_pool(self) -> WarmPool:
        """Without machines where the deployment wants none: then it ends those that are left."""
        from nodus_core.aws.clients import ecs_asked_once
        from nodus_core.aws.tasks import EcsSandboxTasks, TaskPlace

        return WarmPool(
            self.journal,
            EcsSandboxTasks(ecs_asked_once(), TaskPlace.from_environment(self.environment)),
            self.fleet,
            self.clock,
            self.ids,
            self.warm_sandboxes,
            lambda: Machine(pull=Images(self.shelf, self.images).pinned(NOBODY, None).pull),
            self.link_addresses,
        )

    @property
    def warm_sandboxes(self) -> int:
        return int(self.environment["NODUS_WARM_SANDBOXES"])

    @property
    def link_addresses(self) -> dict[str, str]:
        """What sandboxes are told of the link."""
        return {"NODUS_LINK_HTTP": self.endpoints.link_http, "NODUS_LINK_WS": self.endpoints.link_ws}

    @cached_property
    def sandbox_tasks(self) -> SandboxTasks:
        from nodus_core.aws.clients import ecs
        from nodus_core.aws.tasks import EcsSandboxTasks, TaskPlace
        from nodus_core.conversations.warm_tasks import WarmTasks

        tasks = EcsSandboxTasks(ecs(), TaskPlace.from_environment(self.environment))
        return WarmTasks(tasks, self.journal, self.clock) if self.warm_sandboxes else tasks

    @cached_property
    def worker(self) -> Worker:
        from nodus_core.aws.clients import s3, secretsmanager
        from nodus_core.aws.s3_archives import S3Archives
        from nodus_core.aws.secrets import SecretsManagerSecrets
        from nodus_core.providers.downloads import AllowedDownloads
        from nodus_core.providers.git_repositories import GitRepositories
        from nodus_core.providers.offered import OfferedModels

        secrets, secret = SecretsManagerSecrets(secretsmanager()), self.environment["NODUS_PROVIDERS_SECRET"]
        return Worker(
            Ports(
                journal=self.journal,
                payloads=self.payloads,
                archives=S3Archives(s3(), self.environment["NODUS_PAYLOADS"]),
                models=OfferedModels(lambda: secrets.read(secret)),
                tasks=self.sandbox_tasks,
                bell=self.bell,
                clock=self.clock,
                ids=self.ids,
                vault=self.vault,
                repositories=GitRepositories(self.allowed, lambda: secrets.read(secret)),
                downloads=AllowedDownloads(self.allowed, lambda: secrets.read(secret)),
                allowed=self.allowed,
                link=self.link_addresses,
            )
        )


class Environment(Protocol):
    """The model of a function's environment (`functions/<name>/env.py`)."""

    @classmethod
    def model_validate(cls, obj: Any) -> Any: ...


@cache
def core(environment: type[Environment]) -> Core:
    """The process's one core. Raises pydantic's `ValidationError` naming every variable that is missing."""
    environment.model_validate(dict(os.environ))
    return Core(dict(os.environ))
