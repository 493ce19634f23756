"""`AgentRunList` as it is sent: runs that are created together (NOD-360, NODQ-78)."""

from collections.abc import Mapping
from typing import Any, cast

from nodus_core.kernel.errors import Cause, Refusal
from nodus_core.kernel.objects import AGENT_RUN
from nodus_core.resources.kinds import API_VERSION, BY_NAME
from nodus_core.resources.manifest import Manifest, read_manifest
from nodus_core.resources.refusals import invalid, of_item, unknown_fields

KIND = BY_NAME[AGENT_RUN].list_name

MOST_ITEMS = 100
"""Runs of one batch (NOD-360)."""

_FIELDS = ("apiVersion", "kind", "metadata", "items")


def is_list(body: Mapping[str, Any]) -> bool:
    """Whether a body that creates runs is a list of them."""
    return body.get("kind") == KIND


def read_list(body: Mapping[str, Any], project: str) -> list[Manifest]:
    """The runs in a request body, each checked whole. Raises `Refusal` as `read_manifest` does, naming the item."""
    causes = list(unknown_fields(body, _FIELDS, ""))
    if body.get("apiVersion") != API_VERSION:
        causes.append(Cause("apiVersion", f"must be {API_VERSION}"))
    items = body.get("items")
    if not isinstance(items, list) or not 1 <= len(cast("list[Any]", items)) <= MOST_ITEMS:
        causes.append(Cause("items", f"must be a list of 1 to {MOST_ITEMS} objects of kind {AGENT_RUN}"))
    if causes:
        raise invalid(KIND, None, tuple(causes))
    return [_item(number, item, project) for number, item in enumerate(cast("list[Any]", items))]


def _item(number: int, item: Any, project: str) -> Manifest:
    if not isinstance(item, dict):
        cause = Cause(f"items[{number}]", f"must be an object of kind {AGENT_RUN}")
        raise invalid(KIND, None, (cause,))
    try:
        return read_manifest(cast("dict[str, Any]", item), AGENT_RUN, project)
    except Refusal as refusal:
        raise of_item(number, refusal) from None
