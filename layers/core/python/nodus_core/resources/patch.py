"""Changing objects: merge patch (RFC 7386, NODQ-60) and what an admitted run's fields allow."""

from typing import Any, cast

from nodus_core.kernel.errors import Cause, Refusal
from nodus_core.resources.document import below, canonical
from nodus_core.resources.refusals import invalid


def merge(target: Any, patch: Any) -> Any:
    """`target` with `patch` merged into it: null removes a field, fields are merged, all else is replaced."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(cast("dict[str, Any]", target)) if isinstance(target, dict) else {}
    for key, value in cast("dict[str, Any]", patch).items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge(merged.get(key), value)
    return merged


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values mean the same."""
    return canonical(one) == canonical(other)


def immutable(kind: str, name: str, old: dict[str, Any], new: dict[str, Any]) -> Refusal:
    """The refusal of a change to a spec that cannot change (NOD-051), naming the fields that differ."""
    differing = [
        field
        for field in sorted(old.keys() | new.keys())
        if (field in old) != (field in new) or not same(old.get(field), new.get(field))
    ]
    message = f"is immutable: the {kind} was admitted with it; make a new one"
    return invalid(kind, name, tuple(Cause(below("spec", field), message) for field in differing))
