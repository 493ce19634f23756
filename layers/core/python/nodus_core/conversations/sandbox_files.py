"""Files of running sandboxes: asked of their daemons, which do everything as the commands' user (decision 21).

So no path leads out of what a command sees, whatever links stand there (FLD-15). Nothing here starts a machine.
"""

import stat
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from nodus_core.access.door import Place
from nodus_core.conversations.asking import Answer, Asking, Question
from nodus_core.conversations.listing import PageOf, token, untoken
from nodus_core.conversations.machines_seen import MachinesSeen
from nodus_core.kernel.times import stamp
from nodus_core.sandboxes.answers import Entry, ListedFolder, done, read_as

Shown = dict[str, Any]


@dataclass(frozen=True)
class SandboxFiles:
    """Use cases of files. Each raises what `MachinesSeen.running`, `Asking.ask` and `answers.done` do."""

    machines: MachinesSeen
    asking: Asking

    def page(self, place: Place, name: str, path: str, limit: int, after: str | None) -> PageOf:
        """A page of a folder's entries by name, or the one entry that a file is. `BadRequest` for a bad token."""
        request = {"path": path, "limit": limit, **({"after": untoken(after)} if after else {})}
        found = read_as(ListedFolder, self._asked(place, name, Question("list", request)))
        return PageOf([_entry(each) for each in found.entries], token(found.next) if found.next else None)

    def _asked(self, place: Place, name: str, question: Question) -> Answer:
        machine = self.machines.running(self.machines.find(place, name))
        return done(name, question.request.get("path", ""), self.asking.ask(name, machine, question))


def _entry(entry: Entry) -> Shown:
    modified = datetime.fromtimestamp(entry.mtime_ns / 1e9, UTC)
    told = {"target": entry.target, "etag": entry.etag and f'"{entry.etag}"'}
    return {
        "name": entry.name,
        "type": entry.type,
        "size": entry.size,
        "mode": f"{stat.S_IMODE(entry.mode):04o}",
        "modifiedAt": stamp(modified),
        **{word: value for word, value in told.items() if value is not None},
        **({} if entry.named else {"nameIsNotText": True}),
    }
