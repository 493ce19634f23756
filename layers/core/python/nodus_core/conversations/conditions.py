"""`status.conditions` of objects that only say something: what this release does with them.

They follow from the spec, from the release and, for a key, from the time at which they are read, and are never
stored: a release that can do more says so of old objects, too. A run's own conditions are part of its projection.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from nodus_core.conversations.availability import NOT_AVAILABLE, unhonoured
from nodus_core.conversations.sources import Allowed
from nodus_core.kernel.objects import AGENT_RUN, SANDBOX, Object
from nodus_core.kernel.times import stamp
from nodus_core.resources.agent import STOPPED
from nodus_core.resources.api_key import expiry_of
from nodus_core.resources.columns import READY, pick
from nodus_core.resources.environmentimage import BUILDING, COMPLETED
from nodus_core.resources.kinds import BY_NAME

_OWN = frozenset({AGENT_RUN, SANDBOX, "Connection"})
"""Kinds whose status has its conditions already."""

SUBAGENTS = "SubagentsHonoured"
EXPIRED = "Expired"
CLOSING = "Closing"
"""The phase of a project in which nothing is made any more; any other has none."""

Spec = Mapping[str, Any]


class Said(NamedTuple):
    """One condition. `since`: when it came to be so, if not with the spec."""

    type: str
    holds: bool
    reason: str
    message: str
    since: datetime | None = None


def with_conditions(
    obj: Object, spec: Spec, status: dict[str, Any], now: datetime, allowed: Allowed
) -> dict[str, Any]:
    """The status with the conditions of the object's kind, and with the phase of one that nothing acts on yet.

    `now`: the moment as of which they are told. `allowed`: what the operator lets projects read.
    """
    if obj.key.kind in _OWN:
        return status
    kind = BY_NAME[obj.key.kind]
    said = _conditions(kind.name, spec, status, now, allowed)
    told = {**status, "conditions": [shown(obj, condition) for condition in said]}
    return told if kind.phase is None else {"phase": kind.phase, **told}


def shown(obj: Object, said: Said) -> dict[str, Any]:
    """A condition as it stands in a status."""
    return {
        "type": said.type,
        "status": str(said.holds),
        "reason": said.reason,
        "message": said.message,
        "observedGeneration": obj.generation,
        "lastTransitionTime": stamp(said.since or obj.revised_at or obj.created_at),
    }


def _conditions(
    kind: str, spec: Spec, status: Mapping[str, Any], now: datetime, allowed: Allowed
) -> Iterator[Said]:
    notice = BY_NAME[kind].notice
    if notice is not None:
        yield Said(READY, False, NOT_AVAILABLE, notice)
    elif kind == "Agent":
        yield _agent(spec, allowed)
        yield from _subagents(spec)
    elif kind == "ApiKey":
        yield _api_key(spec, now)
    elif kind == "EnvironmentImage":
        yield _image(status)
    elif status.get("phase") == CLOSING:
        message = "A call that deletes the project has closed it, and nothing is made in it: delete it again."
        yield Said(READY, False, CLOSING, message)
    else:
        yield Said(READY, True, "Accepted", "It holds.")


def _agent(spec: Spec, allowed: Allowed) -> Said:
    if spec.get("state") == STOPPED:
        return Said(READY, False, STOPPED, "The agent takes no runs: remove spec.state to start it again.")
    fields = unhonoured(spec)
    if fields:
        listed = " and ".join(f"{field} {why}" for field, why in fields.items())
        return Said(READY, False, NOT_AVAILABLE, f"Runs are refused: {listed}.")
    archive = pick(spec, "source.archive.url")
    if archive is not None and not allowed.allows_archive(archive):
        message = "Runs are refused: the operator has not allowed the host of spec.source.archive.url."
        return Said(READY, False, "HostNotAllowed", message)
    return Said(READY, True, "Accepted", "The agent takes runs.")


def _subagents(spec: Spec) -> Iterator[Said]:
    if "maxParallelAgents" in spec:
        message = "spec.maxParallelAgents is kept and not honoured yet: runs have no subagents."
        yield Said(SUBAGENTS, False, NOT_AVAILABLE, message)


def _image(status: Mapping[str, Any]) -> Said:
    if status.get("state") == COMPLETED:
        return Said(READY, True, COMPLETED, "It can be used as the image of Agents and Sandboxes.")
    if status.get("state") == BUILDING:
        return Said(READY, False, BUILDING, "It is being built: wait until its state is Completed or Failed.")
    # One of an earlier release has no state: nothing has looked for its image.
    message = str(status.get("message", "Nobody has looked for its image yet: build it again."))
    return Said(READY, False, str(status.get("reason", NOT_AVAILABLE)), message)


def _api_key(spec: Spec, now: datetime) -> Said:
    expiry = expiry_of(spec)
    if expiry is not None and expiry <= now:
        return Said(READY, False, EXPIRED, "The key works no more: make another one.", expiry)
    return Said(READY, True, "Accepted", "The key works.")
