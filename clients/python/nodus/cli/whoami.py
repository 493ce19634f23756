"""`nodus whoami`: with which key one calls, and where."""

from __future__ import annotations

from typing import Any

import click

from nodus import _config
from nodus._kinds import API_KEY
from nodus.cli import picking, text
from nodus.cli.session import Command, Session, pass_session
from nodus.errors import ForbiddenError

PREFIX_CHARACTERS = 12  # of a token; an ApiKey shows them as `status.prefix`
# What the server says to a key that it takes, and that may not read keys. Any other refusal (of the organization, by
# a gateway) is told: such a key is not fine.
_MAY_NOT_READ_KEYS = (f"permission {API_KEY.plural}:read", "key is for single projects")


@click.command(cls=Command)
@pass_session
def whoami(session: Session) -> None:
    """Say with which key one calls, and where.

    The server is asked, so a key or an organization that it does not take is refused. A key that may not read keys is
    known by its beginning only.

    \b
      nodus whoami
    """
    settings = session.client.settings
    prefix = settings.token[:PREFIX_CHARACTERS]
    try:
        keys = [key.to_dict() for key in session.client.apikeys.list()]
    except ForbiddenError as error:
        if not any(words in error.message for words in _MAY_NOT_READ_KEYS):
            raise
        keys = []
    mine = next((key for key in keys if picking.pick(key, "status.prefix") == prefix), None)
    stored = _config.load()
    rows = {
        "Server": settings.server,
        "Context": session.context or stored.current,
        "Organization": settings.org or "(that of the key)",
        "Project": settings.project,
        "Key": f"{prefix}…" if mine is None else picking.pick(mine, "metadata.name"),
        **_rights(mine),
    }
    for name, value in rows.items():
        if value:
            click.echo(f"{name + ':':<14}{text.line(value)}")


def _rights(key: dict[str, Any] | None) -> dict[str, Any]:
    """What a key may do, where and until when."""
    if key is None:
        return {}
    permissions: list[str] = picking.pick(key, "spec.permissions") or []
    projects: list[str] = picking.pick(key, "spec.projects") or []
    return {
        "May": picking.pick(key, "spec.role") or ",".join(permissions),
        "In projects": ",".join(projects),
        "Expires": picking.pick(key, "spec.expiresAt"),
    }
