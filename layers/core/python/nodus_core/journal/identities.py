"""Rows that say what an AWS identity may do, by its ARN and an organization."""

from dataclasses import dataclass
from datetime import datetime

from nodus_core.journal.codec import from_row
from nodus_core.journal.keys import identity_key, identity_partition
from nodus_core.journal.store import Delete, Present, Put
from nodus_core.journal.writer import Writer, stored
from nodus_core.kernel.errors import ConditionFailed


@dataclass(frozen=True)
class Identity:
    """What whoever is this in AWS may do here. `arn` is a role's without path, never a session's."""

    arn: str
    org: str
    projects: tuple[str, ...]
    permissions: tuple[str, ...]
    created_at: datetime


class IdentityRows:
    """Reads and commits of mappings."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def of(self, arn: str) -> list[Identity]:
        """What the identity may do, one for each organization that knows it."""
        page = self._writer.store.query(identity_partition(arn))
        return [from_row(Identity, row) for row in page.rows]

    def keep(self, identity: Identity) -> None:
        """In the place of what was said of it before."""
        self._writer.commit("map-identity", Put(stored(identity_key(identity.arn, identity.org), identity)))

    def forget(self, arn: str, org: str) -> bool:
        """Returns whether there was such a mapping."""
        try:
            self._writer.commit("unmap-identity", Delete(identity_key(arn, org), when=Present()))
        except ConditionFailed:
            return False
        return True
