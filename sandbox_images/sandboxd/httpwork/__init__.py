"""Requests to services in the sandbox, each made by a process of its own that runs as the commands' user.

So a request reaches what a command reaches, and nothing else. A module here imports the standard library alone
(`sandboxd.workers`).
"""

MODULES = ("exchange",)
