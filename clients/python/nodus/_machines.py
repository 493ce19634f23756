"""Sandboxes as objects: what can be asked of them beside what every kind has."""

from __future__ import annotations

import os
from functools import partial

from nodus._files import FilesFlows
from nodus._flow import Flow, Item, Stream, operation, stream
from nodus._pages import LARGEST_PAGE, Pages, items_of
from nodus._record import Record
from nodus._resources import AsyncResource, Resource
from nodus._transport import Call

FOLLOW_SECONDS = 8
"""For which one call waits for more output."""
BEGIN_SECONDS = 0.3


class SandboxesFlows(FilesFlows):
    """Sandboxes of one's own."""

    @operation
    def start(self, name: str) -> Flow[Record]:
        """Ask for a sandbox's machine; one that is wanted to run already stays as it is (NOD-411).

        Raises:
            ConflictError: it is being deleted, or has cost its ``maxCostUSD``.
        """
        return (yield from self._record(Call("POST", self.path(name, "start"), repeatable=True)))

    @operation
    def stop(self, name: str) -> Flow[Record]:
        """End a sandbox's machine, with its files and processes; one that stands still stays as it is (NOD-412).

        Raises:
            ConflictError: it is being deleted.
        """
        return (yield from self._record(Call("POST", self.path(name, "stop"), repeatable=True)))

    @operation
    def run(
        self,
        name: str,
        command: str,
        *,
        working_dir: str | None = None,
        timeout: str | None = None,
        request_key: str | None = None,
    ) -> Flow[Record]:
        """Place a shell command in a running sandbox, and return it as it stands: it goes on by itself (NOD-431).

        Args:
            name: the sandbox.
            command: the shell command line.
            working_dir: where to run it; ``None``: the sandbox's working folder.
            timeout: it is ended after so much time, such as ``"10m"``; ``None``: after a minute.
            request_key: the same key and command again within a day is the same command, run once; ``None``: a new one.

        Raises:
            SandboxNotRunningError: its machine does not run.
            IdempotencyKeyConflictError: the key was used for another command.
        """
        key = os.urandom(16).hex() if request_key is None else request_key
        wanted = {"command": command, "workingDir": working_dir, "timeout": timeout, "requestKey": key}
        body = {field: value for field, value in wanted.items() if value is not None}
        # The server keeps the request key: sent again after a lost answer, nothing is run twice.
        return (
            yield from self._record(Call("POST", self.path(name, "commands"), body=body, repeatable=True))
        )

    @operation
    def command(self, name: str, command: str) -> Flow[Record]:
        """One command as it stands; ``status.state`` says how."""
        return (yield from self._read({}, name, "commands", command))

    @stream
    def commands(self, name: str) -> Stream[Record]:
        """A sandbox's commands, the newest first, those of earlier machines too (NOD-437)."""
        pages = Pages(lambda query: self._read(query, name, "commands"), {"limit": str(LARGEST_PAGE)})
        while (page := (yield from pages.next())) is not None:
            for found in items_of(page):
                yield Item(found)

    @operation
    def output(self, name: str, command: str) -> Flow[str]:
        """What a command has put out until now, standard output and error together: at most the last 10,000 lines.

        Raises:
            OutputGoneError: its machine is gone.
        """
        reply = yield from self._send(Call("GET", self.path(name, "commands", command, "output")))
        return reply.content.decode("utf-8", "replace")

    @stream
    def follow_output(self, name: str, command: str, *, offset: int = 0) -> Stream[Record]:
        """What a command puts out, from now to its end: pieces with ``stream`` (stdout, stderr), ``text``, ``offset``.

        Args:
            name: the sandbox.
            command: its id.
            offset: where to begin; a piece's ``offset`` is where the next one begins, so that it can be taken up again.

        Raises:
            OutputGoneError: its machine is gone.
        """
        path = self.path(name, "commands", command, "output")
        while True:
            query = {"offset": str(offset), "timeoutSeconds": str(FOLLOW_SECONDS)}
            part = yield from self._record(Call("GET", path, query=query))
            offset = max(offset, part.firstOffset)
            for piece in part.pieces:
                offset += len(piece.text)
                yield Item(Record({"stream": piece.stream, "text": piece.text, "offset": offset}))
            if part.ended:
                return
            if not part.pieces and not part.nextOffset:  # it may not have begun: then nothing was waited for
                yield partial(self._transport.wire.sleep, BEGIN_SECONDS)

    @operation
    def cancel_command(self, name: str, command: str) -> Flow[Record]:
        """End a command, and nothing else (NOD-436); one that has ended stays as it is."""
        return (
            yield from self._record(
                Call("POST", self.path(name, "commands", command, "cancel"), repeatable=True)
            )
        )

    @operation
    def inference(self, name: str, *, model: str | None = None) -> Flow[Record]:
        """How code in a sandbox uses a model that Nodus serves: ``model.token_rates``, ``setup_prompt``, ``python``.

        Nothing of it is put into the sandbox, least of all a key (NOD-423).

        Args:
            name: the sandbox.
            model: id or alias of a model of the catalogue; ``None``: the first one.
        """
        query = {} if model is None else {"model": model}
        return (yield from self._read(query, name, "inference"))

    @operation
    def preview(self, name: str, port: int, *, ttl: str | None = None) -> Flow[Record]:
        """An address that shows the web service at a port of a running sandbox: ``url``, ``expires_at`` (NOD-417).

        Whoever knows the address may use the service, without a key, until then: it is a secret.

        Args:
            name: the sandbox.
            port: where the service listens in the sandbox, on loopback or on all addresses.
            ttl: how long the address works, such as ``"10m"``, at most ``"24h"``; ``None``: an hour.

        Raises:
            SandboxNotRunningError: its machine does not run.
        """
        body = {"port": port, **({} if ttl is None else {"ttl": ttl})}
        return (
            yield from self._record(Call("POST", self.path(name, "previews"), body=body, repeatable=True))
        )

    @operation
    def images(self) -> Flow[list[Record]]:
        """What sandboxes can be made of: the catalogue's images and the project's completed ones (NOD-446)."""
        path = self._client.environmentimages.path().removesuffix("environmentimages") + "imagechoices"
        return list(items_of((yield from self._record(Call("GET", path)))))

    @operation
    def build_image(self, name: str) -> Flow[Record]:
        """Find out anew what an EnvironmentImage stands for; what was made of it before stays as it is (NOD-448).

        One with a setup is ``Building`` then, until its ``status.state`` is ``Completed`` or ``Failed``.
        """
        path = self._client.environmentimages.path(name, "build")
        return (yield from self._record(Call("POST", path, repeatable=True)))

    @operation
    def open_terminal(
        self,
        name: str,
        command: str | None = None,
        *,
        working_dir: str | None = None,
        size: tuple[int, int] | None = None,
        term: str | None = None,
        request_key: str | None = None,
    ) -> Flow[Record]:
        """Open a terminal in a running sandbox, and return it with ``status.connect``: where to connect to, once (NOD-444).

        ``Sandbox.terminal`` does so, and drives it.

        Args:
            name: the sandbox.
            command: a shell command line to run on it; ``None``: an interactive shell.
            working_dir: where to begin; ``None``: the sandbox's working folder.
            size: columns and rows of the window; ``None``: 80 and 24.
            term: type of the terminal; ``None``: ``xterm-256color``.
            request_key: the same key and request again within a day is the same terminal; ``None``: a new one.

        Raises:
            SandboxNotRunningError: its machine does not run.
            TooManyRequestsError: it has as many open terminals as there may be.
            IdempotencyKeyConflictError: the key was used for another terminal.
        """
        key = os.urandom(16).hex() if request_key is None else request_key
        columns, rows = size or (None, None)
        wanted = {
            "command": command,
            "workingDir": working_dir,
            "columns": columns,
            "rows": rows,
            "term": term,
        }
        body = {field: value for field, value in wanted.items() if value is not None}
        path = self.path(name, "terminals")
        return (
            yield from self._record(Call("POST", path, body={**body, "requestKey": key}, repeatable=True))
        )

    @operation
    def terminal(self, name: str, terminal: str) -> Flow[Record]:
        """One terminal as it stands; ``status.state`` says how."""
        return (yield from self._read({}, name, "terminals", terminal))

    @operation
    def terminals(self, name: str) -> Flow[list[Record]]:
        """A sandbox's open terminals, the oldest first."""
        return items_of((yield from self._read({}, name, "terminals")))

    @operation
    def attach_terminal(self, name: str, terminal: str) -> Flow[Record]:
        """A terminal with ``status.connect``, for another connection to it.

        Raises:
            SandboxNotRunningError: its machine does not run.
            ConflictError: it ended a while ago.
        """
        return (
            yield from self._record(
                Call("POST", self.path(name, "terminals", terminal, "attach"), repeatable=True)
            )
        )

    @operation
    def close_terminal(self, name: str, terminal: str) -> Flow[Record]:
        """End a terminal and all that runs in it; one that has ended stays as it is."""
        return (
            yield from self._record(
                Call("POST", self.path(name, "terminals", terminal, "close"), repeatable=True)
            )
        )


class Sandboxes(SandboxesFlows, Resource):
    """Sandboxes of one's own; every call returns when it is done."""


class AsyncSandboxes(SandboxesFlows, AsyncResource):
    """Sandboxes of one's own; every call is awaited."""
