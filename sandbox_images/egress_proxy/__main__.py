"""Runs a proxy as a process of its own: `python -I -S …/egress_proxy/__main__.py ORDER` with ORDER as JSON:

{"listener": descriptor of a listening socket, "policy": …, "allow": […], "trusted": […], "about": {…}, "uid": null}

It logs to standard output and ends with its standard input: whoever started it holds the other end.
"""

import asyncio
import concurrent.futures.thread  # noqa: F401 - asyncio loads it late, when its folder may be out of reach
import ctypes
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

if not __package__:
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    __package__ = "egress_proxy"

from egress_proxy.journal import Journal
from egress_proxy.policy import Policy
from egress_proxy.proxy import Proxy

_PR_SET_NO_NEW_PRIVS = 38


def main(words: list[str]) -> int:
    """Serve until standard input ends; answers the exit code."""
    order: dict[str, Any] = json.loads(words[0])
    policy = Policy.of(order["policy"], order["allow"], order["trusted"])
    with socket.socket(fileno=order["listener"]) as listener:
        _drop_privileges(order["uid"])
        asyncio.run(_serve(Proxy(policy, Journal(sys.stdout, order["about"])), listener))
    return 0


def _drop_privileges(uid: int | None) -> None:
    """Become a user that owns nothing; the code is loaded by now, its folder may be root's alone."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "cannot forbid new privileges")
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)


async def _serve(proxy: Proxy, listener: socket.socket) -> None:
    listener.setblocking(False)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), ended.set)
    async with await proxy.serve(listener):
        await ended.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
