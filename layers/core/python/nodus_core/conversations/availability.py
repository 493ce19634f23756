"""What the catalogue knows and this release cannot do yet: accepted in an Agent, refused when a run would need it.

Nothing that a person wrote is silently ignored: a run that would need one of these is refused by name.
"""

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from nodus_core.kernel.errors import Cause, Reason, Refusal
from nodus_core.kernel.objects import SANDBOX
from nodus_core.resources.agent import AgentSpec
from nodus_core.resources.agentrun import AgentRunSpec
from nodus_core.resources.columns import pick
from nodus_core.resources.defaults import DEFAULT_FOLDER
from nodus_core.resources.endpoint import NAMED
from nodus_core.resources.inference_source import ModelSpec

NOT_AVAILABLE: Reason = "NotAvailable"
_REASON = "FieldNotAvailable"
_STATE_DIR = "spec.continuity.stateDir"


def check_available(name: str, run: AgentRunSpec, agent_name: str, agent: AgentSpec) -> None:
    """Raises `Refusal` `NotAvailable` naming every field that the run would need and that does nothing yet."""
    causes = (*_of_run(run), *_of_model(run, agent_name, agent), *_of_agent(agent_name, agent))
    if causes:
        listed = "; ".join(f"{cause.field} {cause.message}" for cause in causes)
        message = f"AgentRun {name!r} cannot be run: {listed}"
        raise Refusal(NOT_AVAILABLE, message, causes=causes, kind="AgentRun", name=name)


def _of_run(run: AgentRunSpec) -> Iterator[Cause]:
    if run.group is not None:
        yield Cause("spec.group", "is not available yet: there are no groups", _REASON)


def _of_model(run: AgentRunSpec, agent_name: str, agent: AgentSpec) -> Iterator[Cause]:
    own = run.model is not None
    model = run.model or agent.model
    if model is None:
        return
    field = "spec.model" if own else "spec.agent"
    where = "" if own else f"names agent {agent_name!r}, whose "
    if _is_endpoint(model):
        yield Cause(field, f"{where}endpoint/NAME is not available yet: name a catalogue model", _REASON)


def _is_endpoint(model: ModelSpec) -> bool:
    return model.access == "OnDemand" and (model.name or "").startswith(NAMED)


def unhonoured(spec: Mapping[str, Any]) -> dict[str, str]:
    """Fields of an agent's or a sandbox's spec that cannot be honoured, each with what it would have to be.

    The folder that is saved must be sure to be writable. A source fills the working folder with its files and nothing
    else, so what is saved is then all of it.
    """
    saved, workspace = pick(spec, "continuity.stateDir"), spec.get("workingDir", DEFAULT_FOLDER)
    if saved in (None, workspace):
        return {}
    if "source" in spec:
        return {_STATE_DIR: f"must be the working folder, {workspace}, where a source fills that"}
    if PurePosixPath(saved).is_relative_to(workspace):
        return {}
    return {_STATE_DIR: f"must be the working folder, {workspace}, or a folder below it"}


def check_sandbox(name: str, spec: Mapping[str, Any]) -> None:
    """Raises `Refusal` `NotAvailable` naming every field of a Sandbox that cannot be honoured."""
    causes = tuple(Cause(field, why, _REASON) for field, why in unhonoured(spec).items())
    if causes:
        listed = " and ".join(f"{cause.field} {cause.message}" for cause in causes)
        message = f"Sandbox {name!r} cannot be started: {listed}"
        raise Refusal(NOT_AVAILABLE, message, causes=causes, kind=SANDBOX, name=name)


def _of_agent(name: str, agent: AgentSpec) -> Iterator[Cause]:
    for field, why in unhonoured(agent.model_dump(by_alias=True, exclude_none=True)).items():
        yield Cause("spec.agent", f"names agent {name!r}, whose {field} {why}", _REASON)
