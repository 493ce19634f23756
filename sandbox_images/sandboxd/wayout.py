"""The commands' way to the egress proxy where no launcher has made them one: it stands in the daemon's process."""

import asyncio
import contextlib
import logging
import socket
import sys
import threading

from egress_proxy.journal import Journal
from egress_proxy.policy import Policy
from egress_proxy.proxy import Proxy
from egress_proxy.variables import PORT

from sandboxd.seccomp.streams import LOOPBACK_DEVICE

logger = logging.getLogger(__name__)

_BACKLOG = 256


class WayOut:
    """The proxy of one sandbox, on the port of loopback that commands are told of.

    It is a thread with a loop of its own, so that no download makes the daemon late for its link.
    """

    def __init__(self, policy: Policy, port: int = PORT) -> None:
        """Opens it.

        Args:
            policy: what the proxy lets out.
            port: where the proxy listens.

        Raises:
            OSError: somebody has the port.
        """
        self._listener = socket.create_server(("127.0.0.1", port), backlog=_BACKLOG)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, LOOPBACK_DEVICE)
        self._loop = asyncio.new_event_loop()
        self._proxy = Proxy(policy, Journal(sys.stdout))
        self._ended = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="egress-proxy", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends it; connections end with it."""
        with contextlib.suppress(RuntimeError):  # the proxy has ended by itself, and its loop with it
            self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._serve())
        except Exception:
            logger.exception("the egress proxy has ended: nothing leaves the sandbox any more")

    async def _serve(self) -> None:
        self._listener.setblocking(False)
        server = await self._proxy.serve(self._listener)
        await self._ended.wait()
        server.close()  # connections are ended with the loop's tasks
