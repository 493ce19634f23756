"""Groups of runs: kept and checked; they take no members yet, and start nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nodus_core.conversations.agents import agent_named
from nodus_core.conversations.definitions import Definitions
from nodus_core.journal.store import Operation
from nodus_core.kernel.errors import Cause, Refusal
from nodus_core.kernel.objects import Object, ObjectKey
from nodus_core.resources.agentgroup import DEFAULT_SPLIT, DEFAULT_TASKS
from nodus_core.resources.manifest import Manifest
from nodus_core.resources.refusals import invalid

_EVALUATION = "spec.evaluation"


@dataclass(frozen=True)
class Groups(Definitions):
    """Use cases of AgentGroups."""

    kind: str = "AgentGroup"

    def added(self, obj: Object, manifest: Manifest) -> Sequence[Operation]:
        """Nothing beside the group. Raises `Refusal` where it names an agent or an Environment that is not there."""
        agent_named(self.shelf, obj.key.org, obj.key.project, manifest.spec["agent"])
        evaluation = manifest.spec.get("evaluation")
        if evaluation is not None:
            self._check_evaluation(obj.key, evaluation)
        return ()

    def _check_evaluation(self, key: ObjectKey, evaluation: Mapping[str, Any]) -> None:
        """The Environment's version is there and has tasks enough (NODQ-07, NODQ-09)."""
        name, version = evaluation["environment"]["name"], evaluation["environment"]["version"]
        environment = self.shelf.journal.object(ObjectKey(key.org, key.project, "Environment", name))
        spec = {} if environment is None else self.shelf.spec(environment)
        if spec.get("version") != version:
            message = f"there is no Environment {name!r} with version {version!r} in this project"
            cause = Cause(f"{_EVALUATION}.environment", "names no published version", "FieldValueNotFound")
            raise Refusal("NotFound", message, causes=(cause,), kind="Environment", name=name)
        split = evaluation.get("split", DEFAULT_SPLIT)
        there, wanted = len(spec["splits"].get(split, ())), evaluation.get("tasks", DEFAULT_TASKS)
        if wanted > there:
            message = f"asks for {wanted} tasks, and split {split!r} of Environment {name!r} has {there}"
            raise invalid(self.kind, key.name, (Cause(f"{_EVALUATION}.tasks", message),))
