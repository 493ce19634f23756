"""Folders: what is in them, made, moved and removed."""

import base64
import contextlib
import errno
import os
import shutil
import stat

from sandboxd.filework.rules import RefusedError, check_version, etag, stat_or_none

TYPES = {stat.S_IFREG: "File", stat.S_IFDIR: "Folder", stat.S_IFLNK: "Link"}
MOST_TARGET = 1024
"""Characters that are told of where a link leads."""

MOST_TOLD_BYTES = 128 * 1024
"""Of one page of a folder: the answer has to fit into a row."""

ROOT = "/"


def list_folder(request: dict) -> tuple[dict, bytes]:
    """A page of a folder's entries in the order of their names' bytes, or the one entry that a file is.

    `after` is the base64 of the name that the page before ended with, and so is `next`.
    """
    path, limit = request["path"], request["limit"]
    info = os.stat(path)
    if not stat.S_ISDIR(info.st_mode):
        return {"folder": False, "entries": [entry(os.path.basename(path), info)]}, b""
    after = base64.b64decode(request.get("after") or "")
    with os.scandir(os.fsencode(path)) as found:
        names = sorted(each.name for each in found if each.name > after)
    entries: list[dict] = []
    told, last = 0, b""
    for name in names:
        if len(entries) == limit or told > MOST_TOLD_BYTES:
            return {"folder": True, "entries": entries, "next": base64.b64encode(last).decode()}, b""
        last = name
        shown = entry_at(os.path.join(os.fsencode(path), name), name)
        if shown is not None:
            entries.append(shown)
            told += 200 + 6 * len(shown["name"]) + 6 * len(shown.get("target", ""))
    return {"folder": True, "entries": entries}, b""


def entry_at(path: bytes, name: bytes) -> dict | None:
    """An entry of a folder; None when it is gone meanwhile."""
    try:
        info = os.lstat(path)
        target = os.readlink(path) if stat.S_ISLNK(info.st_mode) else None
    except OSError:
        return None
    shown = entry(name, info)
    if target is not None:
        shown["target"] = target.decode("utf-8", "replace")[:MOST_TARGET]
    return shown


def entry(name: str | bytes, info: os.stat_result) -> dict:
    """What is told of a file. A name that is no UTF-8 is shown with U+FFFD, and `named` says that it is none."""
    raw = os.fsencode(name)
    text = raw.decode("utf-8", "replace")
    kind = TYPES.get(stat.S_IFMT(info.st_mode), "Other")
    return {
        "name": text,
        "named": text.encode() == raw,
        "type": kind,
        "size": info.st_size,
        "mode": stat.S_IMODE(info.st_mode),
        "mtimeNs": info.st_mtime_ns,
        **({"etag": etag(info)} if kind == "File" else {}),
    }


def make_folder(request: dict) -> tuple[dict, bytes]:
    """Makes a folder; one that is there already is fine."""
    path = request["path"].rstrip("/") or "/"
    old = stat_or_none(path)
    if old is not None and not stat.S_ISDIR(old.st_mode):
        raise RefusedError("exists", f"{path!r} is there already and is no folder.")
    make_folders(path)
    return {}, b""


def make_folders(path: str) -> list[str]:
    """Makes a folder and those above it; returns what was made, and takes it back when it fails half-way."""
    missing = []
    while stat_or_none(path) is None:
        missing.append(path)
        path = os.path.dirname(path)
    made: list[str] = []
    try:
        for folder in reversed(missing):
            try:
                os.mkdir(folder)
                made.append(folder)
            except FileExistsError:  # a command may have made it meanwhile; a link to nowhere is no folder
                if not os.path.isdir(folder):
                    raise
    except OSError:
        remove_folders(made)
        raise
    return made


def remove_folders(made: list[str]) -> None:
    """Removes folders that are still empty, the deepest first."""
    for folder in reversed(made):
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def remove(request: dict) -> tuple[dict, bytes]:
    """Removes a file, a link (and not what it leads to) or a folder, with what is in it where `recursive` says so.

    `left` tells what could not be removed of a folder of which something is gone already.
    """
    path = request["path"].rstrip("/") or "/"
    info = os.lstat(path)
    check_version(request, path, info)
    if not stat.S_ISDIR(info.st_mode):
        os.unlink(path)
        return {}, b""
    if not request["recursive"]:
        os.rmdir(path)
        return {}, b""
    if os.path.samestat(info, os.stat(ROOT)):
        raise RefusedError(
            "invalid", f"{path!r} is all that there is: name a folder in it. Nothing was removed."
        )
    failures: list[str] = []
    shutil.rmtree(path, onerror=lambda _, at, error: failures.append(f"{at!r}: {error[1]}"))
    return ({"left": failures[0]} if failures else {}), b""


def move(request: dict) -> tuple[dict, bytes]:
    """Gives a file, link or folder another name, in one step; a file that has it is replaced where that is said."""
    path, to = request["path"].rstrip("/"), request["to"].rstrip("/")
    info = os.lstat(path or "/")
    check_version(request, path, info)
    made = make_folders(os.path.dirname(to)) if request["createDirs"] else []
    try:
        there = lstat_or_none(to)
        if there is not None and (not request["overwrite"] or stat.S_ISDIR(there.st_mode)):
            raise RefusedError("exists", f"{to!r} is there already. Nothing was moved.")
        folder = os.path.dirname(to)
        if stat_or_none(folder) is None:  # rename would say it of the file that is there
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), folder)
        os.rename(path, to)
    except BaseException:
        remove_folders(made)
        raise
    return ({"etag": etag(info)} if stat.S_ISREG(info.st_mode) else {}), b""


def lstat_or_none(path: str) -> os.stat_result | None:
    """What stands at a path itself; None when there is nothing."""
    try:
        return os.lstat(path)
    except FileNotFoundError:
        return None
