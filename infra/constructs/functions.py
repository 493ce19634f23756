"""The six functions: how much each may use and what each is told."""

# jsii's classes name parameters differently from its protocols (`_id`, `id`), which a type checker refuses;
# jsii itself checks every argument's type whenever the app is built.
# pyright: reportArgumentType=false

from dataclasses import dataclass

from aws_cdk import ArnFormat, Stack
from constructs import Construct

from infra.constructs.build_project import BUILDERS
from infra.constructs.environment_builds import BuildNames
from infra.constructs.function import NodusFunction, Size
from infra.constructs.http_api import HttpApi
from infra.constructs.kick_schedules import KickSchedules
from infra.constructs.layers import Layers
from infra.constructs.line_machine import LineMachine
from infra.constructs.link_api import LinkApi
from infra.constructs.permissions import (
    build_images,
    find_images,
    keep_sandboxes,
    publish_events,
    read_due,
    read_providers,
    read_secrets,
    remove_secrets,
    ring_bells,
    run_sandboxes,
    schedule_kicks,
    start_lines,
    tag_sandboxes,
    use_journal,
    use_payloads,
    use_secrets_key,
    write_secrets,
)
from infra.constructs.sandbox_cluster import SandboxCluster
from infra.names import LINK_STAGE, SANDBOX_CONTAINER, Names
from infra.settings import ACCOUNTS_KEY, Settings
from infra.stacks.state import StateStack


@dataclass(frozen=True)
class Surroundings:
    """What the functions work with.

    Attributes:
        state: journal, payloads, provider keys, bus.
        http_api: the API whose address sandboxes are given.
        link_api: the API of the sandboxes' bells.
        sandboxes: the cluster.
        layers: the code they share.
    """

    state: StateStack
    http_api: HttpApi
    link_api: LinkApi
    sandboxes: SandboxCluster
    layers: Layers


class Functions(Construct):
    """The functions, the line machine between them, and their rights.

    Time-outs: `api` ends with API Gateway's 30 s, `line` works as long as Lambda lets it, `sweeper` is over
    before the next one starts, and `reactor` is short because one slow batch holds back every later kick.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, around: Surroundings, settings: Settings, names: Names
    ) -> None:
        super().__init__(scope, construct_id)
        self._around, self._settings, self._names = around, settings, names
        self.line = self._line()
        self.machine = LineMachine(
            self, "LineMachine", line=self.line.function, settings=settings, names=names
        ).machine
        self.reactor = self._reactor()
        self.schedules = KickSchedules(self, "KickSchedules", target=self.reactor.function, names=names)
        self.api = self._api()
        self.link = self._link()
        self.sweeper = self._sweeper()
        self.admin = self._admin()

    @property
    def all(self) -> list[NodusFunction]:
        """Every function."""
        return [self.api, self.link, self.line, self.reactor, self.sweeper, self.admin]

    def _line(self) -> NodusFunction:
        state, sandboxes = self._around.state, self._around.sandboxes
        environment = {
            **self._table(),
            **self._payloads(),
            **self._link_addresses(),
            **self._cluster(),
            **sandboxes.gpu_places,
            "NODUS_PROVIDERS_SECRET": state.providers.arn,
            **self._secrets(),
            **self._repositories(),
        }
        reserved = self._settings.line_concurrency or None
        line = self._add("line", Size(timeout_s=900, memory_mb=1024, reserved=reserved), environment)
        use_journal(line, state.journal)
        use_payloads(line, state.payloads_arn, remove=True)
        ring_bells(line, self._around.link_api)
        run_sandboxes(line, sandboxes)
        if self._settings.warm_sandboxes:
            tag_sandboxes(line, sandboxes)
        read_providers(line, state.providers)
        self._read_secrets(line)
        return line

    def _api(self) -> NodusFunction:
        size = Size(timeout_s=29, memory_mb=1024, warm=self._settings.warm)
        environment = {
            **self._table(),
            **self._payloads(),
            **self._machine(),
            **self._secrets(),
            **self._link_addresses(),
            **self._repositories(),
            **self.schedules.environment,
            "NODUS_WATCH_WINDOW": str(self._settings.watch_window),
            "NODUS_SECRETS_KEY": self._settings.secrets_key,
            "NODUS_SERVER_NAMES": self._settings.server_names,
            **self._images(),
            "NODUS_GPUS": self._settings.gpus,
            "NODUS_KEY_RATE": str(self._settings.key_rate),
            "NODUS_KEY_BURST": str(self._settings.key_burst),
            "NODUS_IMAGE_REPOSITORIES": self._builder()["NODUS_IMAGE_REPOSITORIES"],
        }
        api = self._add("api", size, environment)
        use_journal(api, self._around.state.journal)
        use_payloads(api, self._around.state.payloads_arn, remove=True)
        start_lines(api, self.machine)
        ring_bells(api, self._around.link_api)
        write_secrets(api, self._secrets_arn())
        if self._settings.secrets_key != ACCOUNTS_KEY:
            use_secrets_key(api, self._settings.secrets_key, write=True)
        schedule_kicks(api, self.schedules)
        find_images(api, self._around.sandboxes)
        return api

    def _link(self) -> NodusFunction:
        size = Size(timeout_s=15, memory_mb=512, warm=self._settings.warm)
        environment = {**self._table(), **self._payloads(), **self._secrets(), **self._link_addresses()}
        link = self._add("link", size, environment)
        ring_bells(link, self._around.link_api)
        use_journal(link, self._around.state.journal)
        use_payloads(link, self._around.state.payloads_arn)
        self._read_secrets(link)
        return link

    def _read_secrets(self, function: NodusFunction) -> None:
        read_secrets(function, self._secrets_arn())
        if self._settings.secrets_key != ACCOUNTS_KEY:
            use_secrets_key(function, self._settings.secrets_key)

    def _reactor(self) -> NodusFunction:
        environment = {
            **self._table(),
            **self._machine(),
            "NODUS_BUS": self._around.state.events.bus.event_bus_name,
        }
        reactor = self._add("reactor", Size(timeout_s=10, memory_mb=512), environment)
        use_journal(reactor, self._around.state.journal)
        start_lines(reactor, self.machine)
        publish_events(reactor, self._around.state.events)
        return reactor

    def _sweeper(self) -> NodusFunction:
        environment = {
            **self._table(),
            **self._payloads(),
            **self._machine(),
            **self._secrets(),
            **self._cluster(),
            **self._builder(),
            **self._images(),
            **self._link_addresses(),
        }
        sweeper = self._add("sweeper", Size(timeout_s=55, memory_mb=512), environment)
        use_journal(sweeper, self._around.state.journal)
        read_due(sweeper, self._around.state.journal)
        use_payloads(sweeper, self._around.state.payloads_arn, remove=True)
        start_lines(sweeper, self.machine)
        remove_secrets(sweeper, self._secrets_arn())
        if self._settings.warm_sandboxes:
            run_sandboxes(sweeper, self._around.sandboxes)
            find_images(sweeper, self._around.sandboxes)
        else:
            keep_sandboxes(sweeper, self._around.sandboxes)
        if self._settings.builds_environments:
            build_images(sweeper, BuildNames(self, self._names))
        return sweeper

    def _admin(self) -> NodusFunction:
        admin = self._add("admin", Size(timeout_s=60, memory_mb=512), {**self._table(), **self._payloads()})
        use_journal(admin, self._around.state.journal)
        use_payloads(admin, self._around.state.payloads_arn)
        return admin

    def _add(self, name: str, size: Size, environment: dict[str, str]) -> NodusFunction:
        return NodusFunction(
            self,
            name.title(),
            name=name,
            size=size,
            environment=environment,
            settings=self._settings,
            names=self._names,
            layers=self._around.layers,
        )

    def _table(self) -> dict[str, str]:
        return {"NODUS_TABLE": self._around.state.journal.table.table_name}

    def _payloads(self) -> dict[str, str]:
        return {"NODUS_PAYLOADS": self._around.state.payloads.bucket.bucket_name}

    def _machine(self) -> dict[str, str]:
        return {"NODUS_LINE_MACHINE": self.machine.state_machine_arn}

    def _cluster(self) -> dict[str, str]:
        """Where sandboxes' tasks run, as what, and how many of them wait for somebody."""
        sandboxes = self._around.sandboxes
        return {
            "NODUS_CLUSTER": sandboxes.name,
            "NODUS_TASK_DEFINITION": sandboxes.family,
            "NODUS_SUBNETS": ",".join(sandboxes.network.subnet_ids),
            "NODUS_SECURITY_GROUP": sandboxes.network.security_group.security_group_id,
            "NODUS_CAPACITY_PROVIDER": sandboxes.capacity_provider,
            "NODUS_SANDBOX_CONTAINER": SANDBOX_CONTAINER,
            "NODUS_RUNTIME_IMAGE": sandboxes.runtime_image,
            "NODUS_WARM_SANDBOXES": str(self._settings.warm_sandboxes),
        }

    def _images(self) -> dict[str, str]:
        return {"NODUS_IMAGES": Stack.of(self).to_json_string(self._around.sandboxes.images)}

    def _secrets(self) -> dict[str, str]:
        return {"NODUS_SECRETS": self._names.prefix}

    def _repositories(self) -> dict[str, str]:
        """What the operator lets projects read."""
        settings = self._settings
        return {
            "NODUS_GITHUB_APP": settings.github_app,
            "NODUS_GIT_HOSTS": settings.git_hosts,
            "NODUS_GIT_FOLDER": settings.git_folder,
            "NODUS_ARCHIVE_HOSTS": settings.archive_hosts,
        }

    def _builder(self) -> dict[str, str]:
        """Who builds projects' images, where they go and what they are for; empty where nobody does."""
        builds, has_any = BuildNames(self, self._names), self._settings.builds_environments
        told = {
            "NODUS_IMAGE_PROJECT": builds.project,
            "NODUS_IMAGE_REPOSITORIES": builds.repositories,
            "NODUS_IMAGE_PLATFORM": BUILDERS[self._settings.architecture][2],
        }
        return {name: value if has_any else "" for name, value in told.items()}

    def _secrets_arn(self) -> str:
        """Every Secret of a project, `PREFIX/ORG/PROJECT/UID`, and nothing that lies higher."""
        return Stack.of(self).format_arn(
            service="secretsmanager",
            resource="secret",
            resource_name=f"{self._names.prefix}/*/*/*",
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )

    def _link_addresses(self) -> dict[str, str]:
        return {
            "NODUS_LINK_API_ID": self._around.link_api.api.api_id,
            "NODUS_LINK_STAGE": LINK_STAGE,
            "NODUS_HTTP_API_ID": self._around.http_api.api.api_id,
        }
