"""Commits and reads of previews. One ends by its time, with its key, and with its sandbox: nobody has to end it."""

from datetime import timedelta

from nodus_core.journal.codec import from_row
from nodus_core.journal.keys import preview_key
from nodus_core.journal.store import Absent, Put
from nodus_core.journal.writer import Writer, stored
from nodus_core.kernel.previews import Preview

KEPT = timedelta(hours=1)
"""After its end, when the table may remove the row."""


class Previews:
    """Each commit raises `ConditionFailed`."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def issue(self, preview: Preview) -> None:
        """Whoever knows the token may use it. Condition: there is no such preview yet."""
        ends = int((preview.expires_at + KEPT).timestamp())
        row = stored(preview_key(preview.hash), preview, ttl=ends)
        self._writer.commit("issue-preview", Put(row, when=Absent()))

    def find(self, token_hash: str) -> Preview | None:
        """The preview of a token, also one whose time is over."""
        row = self._writer.store.get([preview_key(token_hash)])[0]
        return None if row is None else from_row(Preview, row)
