"""The daemon's own safe reader and writer of archives (docs/decisions/0023), in processes of the commands' user.

A module here, but for the desk, imports the standard library and those that stand before it in `MODULES`
(`sandboxd.workers`).
"""

MODULES = {
    "packing": ("judging", "packing"),
    "unpacking": ("judging", "decompression", "tar_file", "zip_file", "entries", "unpacking"),
}
"""What each worker is made of, in the order in which it is made; the last one does the request."""
