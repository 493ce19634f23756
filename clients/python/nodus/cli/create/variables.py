"""Environment variables of commands, as options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from nodus._variables import variables_spec
from nodus.cli.create.making import given

F = TypeVar("F", bound=Callable[..., Any])


def variable_options(command: F) -> F:
    """Give a command ``--env`` and ``--secret``; `variables` makes a spec of them."""
    env = click.option(
        "--env", multiple=True, metavar="NAME=VALUE", help="A variable of its commands; several times."
    )
    secret = click.option(
        "--secret",
        "secrets",
        multiple=True,
        metavar="NAME=SECRET/FIELD",
        help="A variable that gets a field of a Secret; several times.",
    )
    return env(secret(command))


def variables(env: tuple[str, ...], secrets: tuple[str, ...]) -> dict[str, Any]:
    """``env`` and ``secrets`` that are asked for."""
    values = dict(_parted("--env", text, "=", "NAME=VALUE") for text in env)
    sources = [_parted("--secret", text, "=", "NAME=SECRET/FIELD") for text in secrets]
    fields = {name: _parted("--secret", source, "/", "NAME=SECRET/FIELD") for name, source in sources}
    return variables_spec(
        **{"env": None, "secrets": None} | given(env=values or None, secrets=fields or None)
    )


def _parted(option: str, text: str, sign: str, form: str) -> tuple[str, str]:
    left, found, right = text.partition(sign)
    if not left or not found or not right.strip():
        # The text is not repeated: it may hold a value.
        raise click.BadParameter(f"{option} takes {form}")
    return left, right
