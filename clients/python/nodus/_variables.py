"""Environment variables of a sandbox's commands, as arguments and as a ``spec`` (NODQ-70)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Env = Mapping[str, str]
"""Values by the names of their variables."""

SecretFields = Mapping[str, tuple[str, str]]
"""Names of a Secret and of its field, by the name of the variable that gets the value."""


def variables_spec(env: Env | None, secrets: SecretFields | None) -> dict[str, Any]:
    """``env`` and ``secrets`` of a spec, as far as they are given.

    Raises:
        TypeError: a secret that is not a pair of a Secret's name and a field's.
    """
    spec: dict[str, Any] = {}
    if env is not None:
        spec["env"] = [{"name": name, "value": value} for name, value in env.items()]
    if secrets is not None:
        spec["secrets"] = [_secret(name, source) for name, source in secrets.items()]
    return spec


def _secret(variable: str, source: object) -> dict[str, str]:
    match source:
        case (str(secret), str(field)):
            return {"name": secret, "env": variable, "key": field}
        case _:
            raise TypeError(f"secrets[{variable!r}] must be a pair: the name of a Secret, and of its field")
