"""Kubernetes discovery: which groups, versions and kinds there are, so that kubectl works unmodified."""

from collections.abc import Iterable
from typing import Any

from nodus_core.documents.calls import ONE, Operation
from nodus_core.documents.operations import operations
from nodus_core.resources.kinds import API_VERSION, GROUP, KINDS, VERSION, Kind

Document = dict[str, Any]

VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]
"""What can be done to objects; those that callers do not make they neither delete."""
MAKING = frozenset({"create", "delete"})

_DONE = {"GET": "get", "POST": "create", "PUT": "update", "DELETE": "delete"}
"""Kubernetes' word for what a method does with something below an object."""

_GROUP_VERSION = {"groupVersion": API_VERSION, "version": VERSION}


def core_versions() -> Document:
    """`GET /api`: there is no core group here, which this says in the way that clients expect."""
    return {"kind": "APIVersions", "versions": [], "serverAddressByClientCIDRs": []}


def groups() -> Document:
    """`GET /apis`."""
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group()]}


def group() -> Document:
    """`GET /apis/nodus.dev`."""
    return {"kind": "APIGroup", "apiVersion": "v1", **_group()}


def resources(kinds: Iterable[Kind] = KINDS) -> Document:
    """`GET /apis/nodus.dev/v1`: the kinds, their words, and what is below their objects."""
    listed: list[Document] = []
    calls = list(operations())
    for kind in kinds:
        listed.append(_resource(kind))
        listed += [_subresource(kind, *each) for each in sorted(_below(kind, calls).items())]
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": API_VERSION,
        "resources": listed,
    }


def version(release: str) -> Document:
    """`GET /version`. kubectl compares the numbers with its own: they say which Kubernetes API is spoken."""
    return {
        "major": "1",
        "minor": "30",
        "gitVersion": f"v1.30.0+nodus-{release}",
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": "",
    }


def _group() -> Document:
    return {"name": GROUP, "versions": [_GROUP_VERSION], "preferredVersion": _GROUP_VERSION}


def _resource(kind: Kind) -> Document:
    return {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.name,
        "verbs": [verb for verb in VERBS if kind.is_made_here or verb not in MAKING],
        **({"shortNames": list(kind.short_names)} if kind.short_names else {}),
        "categories": ["nodus"],
    }


def _below(kind: Kind, calls: Iterable[Operation]) -> dict[str, list[str]]:
    """What stands below a kind's objects, and what can be done with it."""
    found: dict[str, list[str]] = {}
    for call in calls:
        below = call.path.partition(f"{ONE}/")[2]
        if call.kind == kind.name and below:
            found.setdefault(below, []).append(_DONE[call.method])
    return found


def _subresource(kind: Kind, name: str, verbs: list[str]) -> Document:
    return {
        "name": f"{kind.plural}/{name}",
        "singularName": "",
        "namespaced": kind.namespaced,
        "kind": kind.name,
        "verbs": sorted(verbs),
    }
