"""One file request: reads one line of JSON and then the bytes to write from standard input, answers likewise."""

import json
import os
import sys

from sandboxd.filework import content, folders
from sandboxd.filework.rules import REASONS, RefusedError


def handle(request: dict, data: bytes) -> tuple[dict, bytes]:
    """Does the request; every refusal becomes an answer."""
    try:
        fields, read = _done(request, data)
    except RefusedError as error:
        return {"refused": error.reason, "message": str(error)}, b""
    except OSError as error:
        reason = REASONS.get(error.errno or 0, "io")
        at = error.filename if isinstance(error.filename, str) else request["path"]
        return {"refused": reason, "message": f"{at!r}: {error.strerror}."}, b""
    return {"fields": fields}, read


def _done(request: dict, data: bytes) -> tuple[dict, bytes]:
    match request["kind"]:
        case "read_file" | "read":
            return content.read_file(request)
        case "write_file" | "write":
            return content.write_file(request, data)
        case "mkdir":
            return folders.make_folder(request)
        case "copy_out":
            return content.copy_out(request)
        case "list":
            return folders.list_folder(request)
        case "remove":
            return folders.remove(request)
        case "move":
            return folders.move(request)
        case kind:
            raise RefusedError("invalid", f"There is no file request {kind!r}.")


def main() -> None:
    """Reads the request, answers it."""
    os.umask(0o022)
    line, _, data = sys.stdin.buffer.read().partition(b"\n")
    answer, read = handle(json.loads(line), data)
    sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n" + read)
    sys.stdout.buffer.flush()
