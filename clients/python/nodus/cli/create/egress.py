"""What commands in a sandbox may reach, as options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from nodus.cli.create.making import given

F = TypeVar("F", bound=Callable[..., Any])


def egress_options(command: F) -> F:
    """Give a command ``--egress`` and ``--allow``; `network` makes a spec of them."""
    policy = click.option(
        "--egress",
        type=click.Choice(["Deny", "AllowList", "Open"], case_sensitive=False),
        metavar="Deny|AllowList|Open",
        help="What commands may reach.",
    )
    hosts = click.option(
        "--allow", multiple=True, metavar="HOST", help="A host of the AllowList; several times."
    )
    return policy(hosts(command))


def network(policy: str | None, allow: tuple[str, ...]) -> dict[str, Any] | None:
    """The egress that is asked for: hosts to allow mean an AllowList."""
    if policy is None and not allow:
        return None
    return {"egress": {"policy": policy or "AllowList", **given(allow=[*allow] or None)}}
