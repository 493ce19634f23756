"""File requests, each done by a process of its own that runs as the commands' user.

A module here imports the standard library and those of `MODULES` that stand before it (`sandboxd.workers`).
"""

MODULES = ("rules", "folders", "content", "work")
"""In the order in which they are made; the last one does the request."""
