"""Routes of the files of a Sandbox (NOD-425 to NOD-430, NODQ-67)."""

import re
from typing import Any

from aws_lambda_powertools.event_handler import Response
from nodus_core.access.door import Place
from nodus_core.conversations.sandbox_files import Content
from nodus_core.kernel.errors import Refusal
from nodus_core.resources.kinds import API_VERSION
from nodus_core.resources.media_types import JSON
from nodus_core.resources.sandbox_file import (
    Save,
    Versions,
    entity_tags,
    read_folder,
    read_mode,
    read_move,
    read_path,
    read_upload,
)

from functions.api.call import Call
from functions.api.gate import Gate, always, bytes_reply, redirect, reply
from functions.api.routes.lists import list_reply
from functions.api.routes.sandboxes import MAY_READ, MAY_WRITE

FILES = "/sandboxes/<name>/files"
MOST_BODY = 4 * 1024 * 1024

_RANGE = re.compile(r"bytes=([0-9]{1,15})-([0-9]{0,15})")


def add(gate: Gate) -> None:
    files = gate.service.files

    @gate.behind("GET", FILES, MAY_READ)
    def read(place: Place, call: Call, name: str) -> Response[Any]:
        call.only("path", "list", "limit", "continue")
        path = read_path(call.query)
        if call.flag("list"):
            page = files.page(place, name, path, call.limit(), call.query.get("continue"))
            return list_reply("SandboxFileList", page, {})
        part = _part(call)
        wanted = Versions(entity_tags(call.headers.get("if-match")))
        content = files.read(place, name, path, wanted, part)
        if content.etag in entity_tags(call.headers.get("if-none-match")):
            return bytes_reply(304, b"", {"ETag": f'"{content.etag}"'})
        return _content_reply(content, part)

    @gate.behind("PUT", FILES, MAY_WRITE, repeatable=_is_known)
    def save(place: Place, call: Call, name: str) -> Response[Any]:
        call.only("path", "mode", "parents", "upload")
        asked = Save(
            read_path(call.query),
            Versions.read(call.headers),
            read_mode(call.query.get("mode")),
            call.flag("parents"),
        )
        key, upload = call.headers.get("idempotency-key", ""), call.query.get("upload")
        if upload is not None:
            return _saved(files.save_uploaded(place, name, asked, upload, key))
        if len(call.body) > MOST_BODY:
            message = (
                f"a body has at most {MOST_BODY} bytes; announce an upload for more (POST files/uploads)"
            )
            raise Refusal("PayloadTooLarge", message)
        return _saved(files.save(place, name, asked, call.body, key))

    @gate.behind("DELETE", FILES, MAY_WRITE, repeatable=_is_known)
    def remove(place: Place, call: Call, name: str) -> Response[Any]:
        call.only("path", "recursive")
        path, versions = read_path(call.query), Versions.read(call.headers)
        key = call.headers.get("idempotency-key", "")
        files.remove(place, name, path, versions, recursive=call.flag("recursive"), key=key)
        return _shown("SandboxFileRemoval", {"path": path})

    _add_below(gate)


def _add_below(gate: Gate) -> None:
    files = gate.service.files

    @gate.behind("POST", f"{FILES}/uploads", MAY_WRITE, repeatable=always)
    def announce(place: Place, call: Call, name: str) -> Response[Any]:
        call.only()
        call.content_type(JSON)
        return _shown("SandboxFileUpload", files.announce(place, name, read_upload(call.json())), 201)

    @gate.behind("POST", f"{FILES}/moves", MAY_WRITE, repeatable=_is_known)
    def move(place: Place, call: Call, name: str) -> Response[Any]:
        call.only()
        call.content_type(JSON)
        asked, versions = read_move(call.json()), Versions.read(call.headers)
        key = call.headers.get("idempotency-key", "")
        return _shown("SandboxFile", files.move(place, name, asked, versions, key))

    @gate.behind("POST", f"{FILES}/folders", MAY_WRITE, repeatable=always)
    def make_folder(place: Place, call: Call, name: str) -> Response[Any]:
        call.only()
        call.content_type(JSON)
        return _shown("SandboxFolder", files.make_folder(place, name, read_folder(call.json()).path))


def _is_known(call: Call) -> bool:
    """Whether the daemon knows the call again."""
    return call.has_key


def _part(call: Call) -> tuple[int, int | None] | None:
    """The one part of a file that `Range` asks for; what is no such range asks for the whole (RFC 9110)."""
    asked = _RANGE.fullmatch(call.headers.get("range", ""))
    if asked is None:
        return None
    start, last = int(asked.group(1)), asked.group(2)
    end = int(last) + 1 if last else None
    return None if end is not None and end <= start else (start, end)


def _content_reply(content: Content, part: tuple[int, int | None] | None) -> Response[Any]:
    headers = {"ETag": f'"{content.etag}"', "Accept-Ranges": "bytes"}
    if content.address is not None:
        headers["Nodus-Content-SHA256"] = content.sha256 or ""
        return redirect(content.address, headers)
    if part is None:
        return bytes_reply(200, content.data, headers)
    if not content.data:
        return bytes_reply(416, b"", {**headers, "Content-Range": f"bytes */{content.size}"})
    last = part[0] + len(content.data) - 1
    return bytes_reply(
        206, content.data, {**headers, "Content-Range": f"bytes {part[0]}-{last}/{content.size}"}
    )


def _saved(shown: dict[str, Any]) -> Response[Any]:
    code = 201 if shown["created"] else 200
    told = {name: value for name, value in shown.items() if name != "created"}
    return _shown("SandboxFile", told, code, {"ETag": shown["etag"]})


def _shown(
    kind: str, fields: dict[str, Any], code: int = 200, headers: dict[str, str] | None = None
) -> Response[Any]:
    return reply({"apiVersion": API_VERSION, "kind": kind, **fields}, code, headers)
