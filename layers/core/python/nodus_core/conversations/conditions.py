"""`status.conditions` of objects that only say something: what this release does with them.

They follow from the spec and from the release alone and are never stored: a release that can do more says so of
old objects, too. A run's own conditions are part of its projection.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from nodus_core.conversations.availability import NOT_AVAILABLE, unhonoured
from nodus_core.kernel.objects import Object
from nodus_core.kernel.times import stamp
from nodus_core.resources.agent import STOPPED
from nodus_core.resources.columns import pick
from nodus_core.resources.kinds import BY_NAME

READY = "Ready"
CONTINUITY = "ContinuityHonoured"

Spec = Mapping[str, Any]
Said = tuple[str, bool, str, str]
"""Type, whether it holds, reason and message."""


def with_conditions(obj: Object, spec: Spec, status: dict[str, Any]) -> dict[str, Any]:
    """The status with the conditions of the object's kind, and with the phase of one that nothing acts on yet."""
    if obj.key.kind == "AgentRun":
        return status
    kind = BY_NAME[obj.key.kind]
    shown = {**status, "conditions": [_shown(obj, *said) for said in _conditions(kind.name, spec)]}
    return shown if kind.phase is None else {"phase": kind.phase, **shown}


def _shown(obj: Object, type_: str, holds: bool, reason: str, message: str) -> dict[str, Any]:
    return {
        "type": type_,
        "status": str(holds),
        "reason": reason,
        "message": message,
        "observedGeneration": obj.generation,
        "lastTransitionTime": stamp(obj.revised_at or obj.created_at),
    }


def _conditions(kind: str, spec: Spec) -> Iterator[Said]:
    notice = BY_NAME[kind].notice
    if notice is not None:
        yield READY, False, NOT_AVAILABLE, notice
    elif kind == "Agent":
        yield _agent(spec)
        yield from _continuity(spec)
    else:
        yield READY, True, "Accepted", "It holds."


def _agent(spec: Spec) -> Said:
    if spec.get("state") == STOPPED:
        return READY, False, STOPPED, "The agent takes no runs: remove spec.state to start it again."
    fields = unhonoured(spec)
    if fields:
        listed = ", ".join(fields)
        return (
            READY,
            False,
            NOT_AVAILABLE,
            f"Runs are refused: {listed} cannot be honoured yet; leave it out.",
        )
    return READY, True, "Accepted", "The agent takes runs."


def _continuity(spec: Spec) -> Iterator[Said]:
    if pick(spec, "continuity.mode") == "Snapshotted":
        message = "spec.continuity is kept and not honoured yet: files live as long as the sandbox."
        yield CONTINUITY, False, NOT_AVAILABLE, message
