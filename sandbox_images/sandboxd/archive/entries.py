"""What an archive holds, a tar or a zip file: its entries, each judged before anybody acts on it."""

import os
from collections.abc import Iterator

from sandboxd.archive.judging import Entry, Limits, RefusedError, Seen
from sandboxd.archive.tar_file import tarred
from sandboxd.archive.zip_file import MAGIC, zipped


def entries(archive: int, limits: Limits) -> Iterator[tuple[Entry, Iterator[bytes]]]:
    """Yields each entry of the archive at the descriptor `archive`, with the bytes of its file in parts.

    `limits`: `maxBytes` of all files, `maxEntries`, `maxDepth` of folders, `outerLinks`, whether symlinks may lead
    out of the folder, and `strip`, how many folders of each name are left away, with what lies above them. Raises
    `RefusedError`; only when this has ended is the whole archive known to be sound.
    """
    seen = Seen(limits["maxEntries"])
    left = limits["maxBytes"]
    kept = False
    found = zipped(archive) if os.pread(archive, 4, 0) in MAGIC else tarred(archive, limits)
    for count, (entry, data) in enumerate(found, start=1):
        if count > limits["maxEntries"]:
            raise RefusedError("too_large", f"The archive has more than {limits['maxEntries']} entries.")
        entry.place(limits)
        if entry.path:
            seen.add(entry)
        left -= entry.size
        if left < 0:
            raise RefusedError("too_large", f"The archive's files have more than {limits['maxBytes']} bytes.")
        if entry.path:
            kept = True
            yield entry, data
    if limits["strip"] and not kept:
        raise RefusedError("damaged", "Nothing of the archive lies below the folders that are left away.")
