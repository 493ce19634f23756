"""File requests, each done by a process of its own that runs as the commands' user.

The daemon hands the sources of these modules to `python -I -S -c` (`sandboxd.files`): the process imports nothing of
the daemon, and no file of the daemon has to be readable for commands. So a module here imports the standard library
and those of `MODULES` that stand before it.
"""

MODULES = ("rules", "folders", "content", "work")
"""In the order in which they are made; the last one does the request."""
