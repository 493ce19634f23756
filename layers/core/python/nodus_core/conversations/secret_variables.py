"""Secrets as variables of commands: looked for at admission, pinned by reference, read when a sandbox comes up.

A run, or a Sandbox, keeps the values that its Secrets had when it was made (NOD-461).
"""

from collections.abc import Iterator, Sequence

from nodus_core.conversations.secrets import KIND, fields_of
from nodus_core.journal.journal import Journal
from nodus_core.kernel.errors import Cause, Refusal
from nodus_core.kernel.objects import Object, ObjectKey
from nodus_core.kernel.sandboxes import SecretVariable
from nodus_core.resources.workspace import SecretVar

MOST_LOOKED_AT = 100
"""Secrets of one read; a spec names no more."""


def pinned(
    journal: Journal, wanted: Sequence[SecretVar], of: ObjectKey, field: str | None = None
) -> tuple[SecretVariable, ...]:
    """The variables of a run or a Sandbox `of`, as references.

    `field`: the path of its spec that names them in place of `spec.secrets`. Raises `Refusal` `NotFound` for a Secret
    that is not in its project, `Invalid` for a field that the Secret has not.
    """
    keys = [ObjectKey(of.org, of.project, KIND, variable.name) for variable in wanted]
    found = journal.objects_at(keys[:MOST_LOOKED_AT]) if keys else []
    missing = [*_missing(wanted, found, field)]
    if missing:
        listed = "; ".join(f"{cause.field} {cause.message}" for cause in missing)
        reason = "NotFound" if any(obj is None for obj in found) else "Invalid"
        message = f"{of.kind} {of.name!r} needs Secrets that are not there: {listed}"
        raise Refusal(reason, message, causes=tuple(missing), kind=of.kind, name=of.name)
    return tuple(
        SecretVariable(variable.env, variable.name, variable.key, obj.uid, obj.value.version)
        for variable, obj in zip(wanted, found, strict=True)
        if obj is not None and obj.value is not None
    )


def _missing(
    wanted: Sequence[SecretVar], found: Sequence[Object | None], field: str | None
) -> Iterator[Cause]:
    for number, (variable, secret) in enumerate(zip(wanted, found, strict=True)):
        path = f"spec.secrets[{number}]"
        if secret is None or secret.value is None:
            message = f"names Secret {variable.name!r}, which does not exist"
            yield Cause(field or f"{path}.name", message, "FieldValueNotFound")
        elif variable.key not in fields_of(secret):
            has = ", ".join(fields_of(secret))
            message = f"names field {variable.key!r} of Secret {variable.name!r}, which has {has}"
            yield Cause(field or f"{path}.key", message, "FieldValueNotFound")
