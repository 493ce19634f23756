"""What a delete may ask for: the body `DeleteOptions` of Kubernetes."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from nodus_core.kernel.errors import Refusal
from nodus_core.kernel.objects import Object
from nodus_core.resources.fields import Spec, Str, Whole
from nodus_core.resources.manifest import read_body

DryRun = Annotated[list[Literal["All"]], Field(max_length=1)]


class Preconditions(Spec):
    """The object that is meant. Another one of the same name is left alone."""

    uid: Str | None = None
    resource_version: Str | None = None

    def check(self, obj: Object) -> None:
        """Raises `Refusal` `Conflict` when another object, or another version of it, is stored."""
        kind, name = obj.key.kind, obj.key.name
        for word, wanted, stored in (
            ("uid", self.uid, obj.uid),
            ("resourceVersion", self.resource_version, str(obj.version)),
        ):
            if wanted not in (None, stored):
                message = (
                    f"{kind} {name!r} has another {word} than preconditions.{word} names; nothing was deleted"
                )
                raise Refusal("Conflict", message, kind=kind, name=name)


ANY = Preconditions()
"""Whatever object has the name."""


class DeleteOptions(Spec):
    """A delete's options. How dependents go and how long it may take is the same whatever is asked for."""

    api_version: Literal["v1", "meta.k8s.io/v1"] | None = None
    kind: Literal["DeleteOptions"] | None = None
    preconditions: Preconditions = ANY
    propagation_policy: Literal["Orphan", "Background", "Foreground"] | None = None
    grace_period_seconds: Annotated[Whole, Field(ge=0)] | None = None
    orphan_dependents: bool | None = None
    dry_run: DryRun | None = None


def read_deletion(body: Mapping[str, Any]) -> DeleteOptions:
    """The options in a request body. Raises `Refusal` naming every field that is not right."""
    return read_body(DeleteOptions, "DeleteOptions", body)
