"""Files of running sandboxes (NOD-425 to NOD-430)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import NamedTuple

from nodus._flow import Flow, Item, Stream, operation, stream
from nodus._handles import Handle
from nodus._pages import LARGEST_PAGE, Pages, items_of
from nodus._record import Record
from nodus._resources import ResourceFlows
from nodus._transport import Call, Reply
from nodus.errors import UnexpectedAnswerError

Progress = Callable[[int], None]
"""Called with each number of bytes that has come or gone, of contents that do not pass the API."""

MOST_INLINE_BYTES = 128 * 1024
"""Of a content that is sent with the call that saves it."""

BYTES = "application/octet-stream"


class File(NamedTuple):
    """A file's content, and its version: what ``if_match`` takes, so that nobody else's change is lost."""

    content: bytes
    etag: str


class FilesFlows(ResourceFlows):
    """What sandboxes do with files; paths count from the working folder unless they are absolute.

    Each call may raise ``SandboxNotRunningError``: nothing starts a machine by itself.
    """

    @stream
    def files(self, name: str, path: str = ".") -> Stream[Record]:
        """What stands in a folder, by name; a file is the one entry of its list."""
        query = {"path": path, "list": "true", "limit": str(LARGEST_PAGE)}
        pages = Pages(lambda asked: self._read(asked, name, "files"), query)
        while (page := (yield from pages.next())) is not None:
            for found in items_of(page):
                yield Item(found)

    @operation
    def read_file(self, name: str, path: str, *, progress: Progress | None = None) -> Flow[File]:
        """A file's content, at most 512 MiB; what does not pass the API is checked by its sha256.

        Raises:
            NotFoundError: there is no such file.
            ConflictError: it is a folder, or no file.
        """
        call = Call("GET", self.path(name, "files"), query={"path": path}, accept="*/*")
        reply = yield from self._send(call)
        if reply.code < 300:
            return File(reply.content, _etag(reply))
        content = yield from self._transport.fetch(reply, progress)
        if hashlib.sha256(content).hexdigest() != reply.headers.get("nodus-content-sha256"):
            raise UnexpectedAnswerError("what was downloaded is not what the sandbox has sent; ask again")
        return File(content, _etag(reply))

    @operation
    def write_file(
        self,
        name: str,
        path: str,
        content: bytes | str,
        *,
        if_match: str | None = None,
        new: bool = False,
        mode: str | None = None,
        parents: bool = False,
        progress: Progress | None = None,
    ) -> Flow[Record]:
        """Save a file, in one step; what comes back has its ``etag`` and ``size``.

        Args:
            name: the sandbox.
            path: the file.
            content: all of it; a text is saved as UTF-8.
            if_match: only if the file is still this version, the ``etag`` that it was read with.
            new: only if there is no such file.
            mode: permission bits such as ``"0755"``; ``None``: the file's own, or 0644.
            parents: make the folders above it.
            progress: is told how many bytes have gone, of a content over 128 KiB.

        Raises:
            PreconditionFailedError: another version is there; nothing was changed (NOD-427).
        """
        raw = content.encode() if isinstance(content, str) else content
        headers = {**({"If-Match": if_match} if if_match else {}), **({"If-None-Match": "*"} if new else {})}
        query = {"path": path, **({"mode": mode} if mode else {}), **({"parents": "true"} if parents else {})}
        body: bytes | None = raw
        if len(raw) > MOST_INLINE_BYTES:
            query["upload"], body = (yield from self._upload(name, raw, progress)), None
        call = Call(
            "PUT",
            self.path(name, "files"),
            query=query,
            body=body,
            content_type=BYTES,
            repeatable=True,
            headers=headers,
        )
        return (yield from self._record(call))

    def _upload(self, name: str, content: bytes, progress: Progress | None) -> Flow[str]:
        """The id of an upload of this content."""
        wanted = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        call = Call("POST", self.path(name, "files", "uploads"), body=wanted, repeatable=True)
        upload = yield from self._record(call)
        yield from self._transport.store(upload.url, content, upload.headers.to_dict(), progress)
        return upload.id

    @operation
    def remove_file(
        self, name: str, path: str, *, if_match: str | None = None, recursive: bool = False
    ) -> Flow[None]:
        """Remove a file, a link or an empty folder; with ``recursive`` a folder with all that is in it."""
        query = {"path": path, **({"recursive": "true"} if recursive else {})}
        headers = {"If-Match": if_match} if if_match else {}
        yield from self._send(
            Call("DELETE", self.path(name, "files"), query=query, repeatable=True, headers=headers)
        )

    @operation
    def move_file(
        self, name: str, path: str, to: str, *, overwrite: bool = False, parents: bool = False
    ) -> Flow[None]:
        """Give a file, link or folder another path.

        Raises:
            ConflictError: something has that path; with ``overwrite`` a file there is replaced.
        """
        body = {"path": path, "to": to, "overwrite": overwrite, "parents": parents}
        yield from self._send(Call("POST", self.path(name, "files", "moves"), body=body, repeatable=True))

    @operation
    def make_folder(self, name: str, path: str) -> Flow[None]:
        """Make a folder and those above it; one that is there is fine."""
        yield from self._send(
            Call("POST", self.path(name, "files", "folders"), body={"path": path}, repeatable=True)
        )


class FilesOfOne(Handle):
    """What a handle to one sandbox does with its files, as ``client.sandboxes`` does."""

    @stream
    def files(self, path: str = ".") -> Stream[Record]:
        """What stands in a folder, by name."""
        yield from FilesFlows.files(self._client.sandboxes, self.name, path)

    @operation
    def read_file(self, path: str) -> Flow[File]:
        """A file's ``content`` and ``etag``."""
        return (yield from FilesFlows.read_file(self._client.sandboxes, self.name, path))

    @operation
    def write_file(
        self,
        path: str,
        content: bytes | str,
        *,
        if_match: str | None = None,
        new: bool = False,
        mode: str | None = None,
        parents: bool = False,
    ) -> Flow[Record]:
        """Save a file, in one step; see ``Sandboxes.write_file``.

        Raises:
            PreconditionFailedError: another version is there; nothing was changed.
        """
        return (
            yield from FilesFlows.write_file(
                self._client.sandboxes,
                self.name,
                path,
                content,
                if_match=if_match,
                new=new,
                mode=mode,
                parents=parents,
            )
        )

    @operation
    def remove_file(self, path: str, *, if_match: str | None = None, recursive: bool = False) -> Flow[None]:
        """Remove a file, a link or a folder."""
        yield from FilesFlows.remove_file(
            self._client.sandboxes, self.name, path, if_match=if_match, recursive=recursive
        )

    @operation
    def move_file(self, path: str, to: str, *, overwrite: bool = False, parents: bool = False) -> Flow[None]:
        """Give a file, link or folder another path."""
        yield from FilesFlows.move_file(
            self._client.sandboxes, self.name, path, to, overwrite=overwrite, parents=parents
        )

    @operation
    def make_folder(self, path: str) -> Flow[None]:
        """Make a folder and those above it."""
        yield from FilesFlows.make_folder(self._client.sandboxes, self.name, path)


def _etag(reply: Reply) -> str:
    return reply.headers.get("etag", "")
