"""Kind `Agent`: a reusable definition (catalogue: *Agent definition*)."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from nodus_core.resources import defaults
from nodus_core.resources.columns import AGE, NAME, REVISION, Column, Shown, dollars, joined, pick
from nodus_core.resources.fields import Image, Money, Prompt, Script, Spec, Whole, WorkingFolder, as_texts
from nodus_core.resources.inference_source import ModelSpec
from nodus_core.resources.workspace import Continuity, Env, Network, Secrets, Source, check_variables

STOPPED = "Stopped"
LARGEST_COUNT = 10_000
"""The largest limit of calls or of agents that a spec may set."""


class AgentSpec(Spec):
    """A definition of an agent, of which runs are made. Every field may be left out; defaults are never stored."""

    system: Prompt | None = Field(
        default=None,
        description="System prompt, sent with every model call; at most 256 KiB. Left out: there is none.",
    )
    model: ModelSpec | None = Field(
        default=None, description="Where inference comes from. Left out: managed Claude (`access: Nodus`)."
    )
    per_run_max_cost_usd: Money | None = Field(
        default=None,
        alias="perRunMaxCostUSD",
        description="What one run may spend on models of Nodus, the choice of one included, in US dollars: more than 0, "
        f'at most 100,000, six decimals. Left out: "{defaults.DEFAULT_COST}". A call that does not fit is not made: '
        "the run waits with MaxCostReached.",
    )
    max_tool_calls: Annotated[Whole, Field(ge=0, le=LARGEST_COUNT)] | None = Field(
        default=None,
        description="Tool calls that a run may make in one turn; the model is told when there are no more. "
        f"Left out: {defaults.DEFAULT_TOOL_CALLS}.",
    )
    max_parallel_agents: Annotated[Whole, Field(ge=0, le=LARGEST_COUNT)] | None = Field(
        default=None,
        description="Subagents of a run that work at the same time. 0 or left out: as many as there are. Runs have "
        "no subagents yet.",
    )
    working_dir: WorkingFolder | None = Field(
        default=None,
        description="Folder of the sandbox in which the setup and the model's commands run, an absolute one that is "
        f"not the system's. Left out: {defaults.DEFAULT_FOLDER}.",
    )
    continuity: Continuity | None = Field(
        default=None,
        description="What of the sandbox's files is saved. Left out: nothing.",
    )
    source: Source | None = Field(
        default=None,
        description="Files that are copied into the working folder before the setup. Left out: none.",
    )
    setup: Script | None = Field(
        default=None,
        description="Shell command that runs once in the working folder before the model is asked; at most 64 KiB. "
        "Where it fails, the run fails with SetupFailed and has cost nothing for models.",
    )
    image: Image | None = Field(
        default=None,
        description="Image of the run's sandbox: a public OCI reference, or the name of an EnvironmentImage of the "
        f"project. Left out: {defaults.DEFAULT_IMAGE}.",
    )
    network: Network | None = Field(
        default=None,
        description="What commands in the sandbox may reach. Left out: nothing.",
    )
    env: Env | None = Field(
        default=None,
        description="Environment variables of the commands, each named once; at most 128 KiB together.",
    )
    secrets: Secrets | None = Field(
        default=None,
        description="Fields of the project's Secrets that commands see as environment variables, each named once. "
        "A run keeps the values that they have when it is created.",
    )
    state: Literal["Stopped"] | None = Field(
        default=None,
        description="`Stopped`: new runs are refused with AgentStopped, those that there are go on. Left out: the "
        "agent takes runs.",
    )

    @model_validator(mode="after")
    def _variables(self) -> Self:
        check_variables(self.env, self.secrets)
        return self

    @classmethod
    def as_stored(cls, spec: dict[str, Any]) -> dict[str, Any]:
        return as_texts(spec, "perRunMaxCostUSD")


def _model(shown: Shown) -> str:
    return str(pick(shown, "spec.model.name") or joined("spec.model.families")(shown))


COLUMNS = (
    NAME,
    Column("Access", "spec.model.access", "Where inference comes from; managed Claude where it is not said."),
    Column("Model", _model, "The model, or the families that may be chosen."),
    Column("Run-Cap", dollars("spec.perRunMaxCostUSD"), "What one run may spend on models."),
    Column("State", "spec.state", "Stopped: takes no new runs."),
    REVISION,
    AGE,
    Column("Image", "spec.image", "Image of the sandboxes.", priority=1),
    Column("Egress", "spec.network.egress.policy", "What commands may reach.", priority=1),
)
