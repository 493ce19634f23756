"""Files of running sandboxes: asked of their daemons, which do everything as the commands' user (decision 21).

So no path leads out of what a command sees, whatever links stand there (FLD-15). Nothing here starts a machine.

up to 128 KiB     in the ask, or in its answer
more              the daemon sends it to the store, or fetches it from there: it never passes the API
"""

import base64
import binascii
import hashlib
import json
import re
import stat
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from nodus_core.access.door import Place
from nodus_core.conversations.asking import MOST_WAIT_S, Asking, Question
from nodus_core.conversations.listing import PageOf, no_token, token, untoken
from nodus_core.conversations.machines_seen import MachinesSeen, Seen
from nodus_core.journal.ports import Clock, Ids
from nodus_core.journal.transfers import Transfers
from nodus_core.kernel.errors import Refusal
from nodus_core.kernel.ids import digest
from nodus_core.kernel.objects import SANDBOX
from nodus_core.kernel.times import stamp
from nodus_core.resources.sandbox_file import MOST_FILE_BYTES, FileMove, FileUpload, Save, Versions
from nodus_core.sandboxes.answers import (
    Entry,
    ListedFolder,
    MovedFile,
    ReadFile,
    Removed,
    Said,
    SentFile,
    WrittenFile,
    decoded,
    done,
    read_as,
)

MOST_INLINE_BYTES = 128 * 1024
"""Of a content that goes in an ask or an answer, and so through the API."""

_UPLOAD = re.compile(r"up-([0-9a-f]{64})-([0-9]{1,13})-[0-9a-f]{16}")

Shown = dict[str, Any]
T = TypeVar("T", bound=Said)


@dataclass(frozen=True)
class Content:
    """A file, or a part of it. Either `data`, or the address at which the whole is (`sha256` tells it)."""

    size: int
    etag: str
    data: bytes = b""
    address: str | None = None
    sha256: str | None = None


@dataclass(frozen=True)
class SandboxFiles:
    """Use cases of files. Each raises what `MachinesSeen.running`, `Asking.ask` and `answers.done` do.

    Of a change, `key` is the caller's of the request: with the same one it is made once, as long as the daemon lives.
    """

    machines: MachinesSeen
    asking: Asking
    transfers: Transfers
    clock: Clock
    ids: Ids

    def page(self, place: Place, name: str, path: str, limit: int, after: str | None) -> PageOf:
        """A page of a folder's entries by name, or the one entry that a file is. `BadRequest` for a bad token."""
        request = {"path": path, "limit": limit, **({"after": _behind(after)} if after else {})}
        found = self._asked(ListedFolder, self.machines.find(place, name), Question("list", request))
        return PageOf([_entry(each) for each in found.entries], token(found.next) if found.next else None)

    def read(
        self, place: Place, name: str, path: str, versions: Versions, part: tuple[int, int | None] | None
    ) -> Content:
        """A file; of `part` the bytes from the first number on, up to before the second one."""
        seen = self.machines.find(place, name)
        start, end = part or (0, None)
        limit = MOST_INLINE_BYTES if end is None else min(end - start, MOST_INLINE_BYTES)
        request = {"path": path, "offset": start, "limit": limit, **versions.wire()}
        found = self._asked(ReadFile, seen, Question("read", request))
        if found.more and limit == MOST_INLINE_BYTES and (end is None or end - start > limit):
            return self._sent(seen, path, found)
        return Content(found.size, found.etag, decoded(found.content))

    def save(self, place: Place, name: str, asked: Save, content: bytes, key: str) -> Shown:
        """Writes a file, in one step. `PreconditionFailed` where another version is there (NOD-427)."""
        seen = self.machines.to_change(place, name)
        if len(content) > MOST_INLINE_BYTES:
            upload = FileUpload(size=len(content), sha256=digest_of(content))
            self.machines.running(seen)  # before anything is stored
            store = self._upload_name(upload)
            self.transfers.put(seen.scope, store, content)
            return self._placed(seen, asked, store, key)
        request = {**asked.wire(), "content": base64.b64encode(content).decode()}
        return self._saved(seen, asked, Question("write", request, key=_key(seen, "write", key)))

    def announce(self, place: Place, name: str, upload: FileUpload) -> Shown:
        """An address to which the content of a file may be put, before it is saved."""
        seen = self.machines.to_change(place, name)
        self.machines.running(seen)
        store = self._upload_name(upload)
        return {
            "id": store,
            "method": "PUT",
            "url": self.transfers.address_to_put(seen.scope, store, upload.size),
            "headers": {"Content-Length": str(upload.size)},
        }

    def save_uploaded(self, place: Place, name: str, asked: Save, upload: str, key: str) -> Shown:
        """Writes a file whose content was uploaded, in one step. `NotFound` for what was not, or over a day ago."""
        return self._placed(self.machines.to_change(place, name), asked, upload, key)

    def remove(
        self, place: Place, name: str, path: str, versions: Versions, *, recursive: bool, key: str
    ) -> None:
        """Removes a file, a link, or a folder. `Conflict` for a folder that is not empty, or not all of it went."""
        seen = self.machines.to_change(place, name)
        request = {"path": path, "recursive": recursive, **versions.wire()}
        found = self._asked(Removed, seen, Question("remove", request, key=_key(seen, "remove", key)))
        if found.left is not None:
            message = f"{path!r} was removed in part only: {found.left[:300]}"
            raise Refusal("Conflict", message, kind=SANDBOX, name=seen.name)

    def move(self, place: Place, name: str, asked: FileMove, versions: Versions, key: str) -> Shown:
        """Gives a file or folder another name. `Conflict` where that is taken."""
        seen = self.machines.to_change(place, name)
        request = {
            "path": asked.path,
            "to": asked.to,
            "overwrite": asked.overwrite,
            "createDirs": asked.parents,
            **versions.wire(),
        }
        found = self._asked(MovedFile, seen, Question("move", request, key=_key(seen, "move", key)))
        return {"path": asked.to, **({} if found.etag is None else {"etag": f'"{found.etag}"'})}

    def make_folder(self, place: Place, name: str, path: str) -> Shown:
        """Makes a folder and those above it; one that is there is fine."""
        self._asked(Said, self.machines.to_change(place, name), Question("mkdir", {"path": path}))
        return {"path": path}

    def _placed(self, seen: Seen, asked: Save, upload: str, key: str) -> Shown:
        announced = _UPLOAD.fullmatch(upload)
        if announced is None or self.transfers.size(seen.scope, upload) is None:
            message = f"nothing was uploaded as {upload[:100]!r}, or over a day ago; announce it, and upload it again"
            raise Refusal("NotFound", message, kind="SandboxFileUpload", name=upload[:100])
        request = {
            **asked.wire(),
            "url": self.transfers.address_to_get(seen.scope, upload),
            "sha256": announced.group(1),
            "size": int(announced.group(2)),
        }
        question = Question("fetch", request, key=_key(seen, "fetch", key or upload), wait_s=MOST_WAIT_S)
        saved = self._saved(seen, asked, question)
        self.transfers.remove(seen.scope, upload)
        return saved

    def _sent(self, seen: Seen, path: str, found: ReadFile) -> Content:
        """A large file: the daemon sends it, once for each version and day, also where nobody waited for its end.

        Raises `Refusal` `Conflict` for one that is too large: a command makes one of any size in no time, and to send
        it takes room in the sandbox, in the store, and time.
        """
        if found.size > MOST_FILE_BYTES:
            message = (
                f"{path[:300]!r} has {found.size} bytes, more than the {MOST_FILE_BYTES} that can be fetched; fetch a "
                "part of it, or let a command split it"
            )
            raise Refusal("Conflict", message, kind=SANDBOX, name=seen.name)
        today = self.clock.now().date().isoformat()
        store = f"down-{digest(json.dumps([self.machines.running(seen).id, path, found.etag, today]))}"
        request = {
            "path": path,
            "size": found.size,
            "ifMatch": [found.etag],
            "url": self.transfers.address_to_put(seen.scope, store, found.size),
        }
        question = Question("send", request, key=store, wait_s=MOST_WAIT_S)
        sent = self._asked(SentFile, seen, question)
        address = self.transfers.address_to_get(seen.scope, store)
        return Content(sent.size, sent.etag, address=address, sha256=sent.sha256)

    def _saved(self, seen: Seen, asked: Save, question: Question) -> Shown:
        found = self._asked(WrittenFile, seen, question)
        return {"path": asked.path, "size": found.size, "etag": f'"{found.etag}"', "created": found.created}

    def _upload_name(self, upload: FileUpload) -> str:
        return f"up-{upload.sha256}-{upload.size}-{digest(self.ids.fresh('upload'))[:16]}"

    def _asked(self, model: type[T], seen: Seen, question: Question) -> T:
        machine = self.machines.running(seen)
        answer = self.asking.ask(seen.name, machine, question)
        return read_as(model, done(seen.name, answer))


def _behind(after: str) -> str:
    """The name that a page ended with, as the daemon wrote it. Raises `Refusal` `BadRequest`."""
    name = untoken(after)
    try:
        base64.b64decode(name, validate=True)
    except (binascii.Error, ValueError):
        raise no_token() from None
    return name


def _key(seen: Seen, verb: str, key: str) -> str:
    return digest(json.dumps([seen.name, verb, key])) if key else ""


def digest_of(content: bytes) -> str:
    """sha256 of bytes, in hex."""
    return hashlib.sha256(content).hexdigest()


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
