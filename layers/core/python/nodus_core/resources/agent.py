"""Kind `Agent`: a reusable definition (catalogue: *Agent definition*)."""

from typing import Annotated, Any, Literal

from pydantic import Field

from nodus_core.resources.columns import AGE, NAME, REVISION, Column, Shown, dollars, joined, pick
from nodus_core.resources.fields import Image, Money, Prompt, Script, Spec, Whole, WorkingFolder, as_texts
from nodus_core.resources.inference_source import ModelSpec
from nodus_core.resources.workspace import Continuity, Env, Network, Secrets, Source

STOPPED = "Stopped"
LARGEST_COUNT = 10_000
"""The largest limit of calls or of agents that a spec may set."""


class AgentSpec(Spec):
    """`spec` of an Agent as written; defaults are applied when a run is admitted, never stored.

    Every field may be left out: an agent without `model` uses managed Claude (`access: Nodus`).
    """

    system: Prompt | None = None
    model: ModelSpec | None = None
    per_run_max_cost_usd: Money | None = Field(default=None, alias="perRunMaxCostUSD")
    max_tool_calls: Annotated[Whole, Field(ge=0, le=LARGEST_COUNT)] | None = None
    max_parallel_agents: Annotated[Whole, Field(ge=0, le=LARGEST_COUNT)] | None = None
    working_dir: WorkingFolder | None = None
    continuity: Continuity | None = None
    source: Source | None = None
    setup: Script | None = None
    image: Image | None = None
    network: Network | None = None
    env: Env | None = None
    secrets: Secrets | None = None
    state: Literal["Stopped"] | None = None

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
