"""The stack of everything that can be deployed anew at any time."""

from pathlib import Path

from aws_cdk import App, CfnOutput, Stack

from infra.constructs.alarms import Alarms
from infra.constructs.environment_builds import BuildNames
from infra.constructs.functions import Functions, Surroundings
from infra.constructs.http_api import HttpApi
from infra.constructs.layers import Layers
from infra.constructs.link_api import LinkApi
from infra.constructs.reactor_sources import ReactorSources
from infra.constructs.sandbox_cluster import SandboxCluster
from infra.constructs.sweeper_schedule import SweeperSchedule
from infra.names import LINK_STAGE, Names
from infra.settings import Settings
from infra.stacks.state import StateStack


class ServiceStack(Stack):
    """Functions, APIs, state machine, sandboxes' cluster, schedules and alarms.

    Args:
        state: the stack of what they work on.
        deps: the built third-party layer, when it is not `layers/deps/build`.
    """

    def __init__(
        self,
        scope: App,
        construct_id: str,
        *,
        settings: Settings,
        names: Names,
        state: StateStack,
        deps: Path | None = None,
    ) -> None:
        super().__init__(
            scope, construct_id, description="Nodus: functions, APIs, state machine, sandboxes, alarms"
        )
        around = Surroundings(
            state=state,
            http_api=HttpApi(self, "HttpApi", settings=settings, names=names),
            link_api=LinkApi(self, "LinkApi", settings=settings, names=names),
            sandboxes=SandboxCluster(self, "Sandboxes", settings=settings, names=names),
            layers=Layers(self, "Layers", settings=settings, deps=deps),
        )
        functions = Functions(self, "Functions", around=around, settings=settings, names=names)
        around.http_api.serve(functions.api.target, functions.link.target)
        around.link_api.serve(functions.link.target)
        self._watch(functions, around, settings, names)
        self._say(functions, around)

    def _watch(self, functions: Functions, around: Surroundings, settings: Settings, names: Names) -> None:
        """What starts the functions that nobody calls, and who is told when something fails."""
        sources = ReactorSources(
            self,
            "ReactorSources",
            reactor=functions.reactor,
            table=around.state.journal.table,
            machine=functions.machine,
            sandboxes=around.sandboxes,
            names=names,
        )
        builder = BuildNames(self, names).project if settings.builds_environments else None
        SweeperSchedule(self, "SweeperSchedule", sweeper=functions.sweeper, builder=builder)
        Alarms(
            self,
            "Alarms",
            functions=functions,
            failures=sources.failures,
            settings=settings,
            names=names,
        )

    def _say(self, functions: Functions, around: Surroundings) -> None:
        """Outputs, for whoever works with the deployed stacks: the local cloud, the CLI, an operator."""
        outputs = {
            "HttpApiUrl": around.http_api.api.api_endpoint,
            "HttpApiId": around.http_api.api.api_id,
            "LinkApiId": around.link_api.api.api_id,
            "LinkApiStage": LINK_STAGE,
            "ClusterName": around.sandboxes.name,
            "AdminFunctionName": functions.admin.function.function_name,
            "SweeperFunctionName": functions.sweeper.function.function_name,
            "FunctionNames": ",".join(each.function.function_name for each in functions.all),
            "LineMachineArn": functions.machine.state_machine_arn,
        }
        for name, value in outputs.items():
            CfnOutput(self, name, value=value)
