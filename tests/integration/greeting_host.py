"""A host of this machine's, outside of every sandbox, that says by which name it was asked."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@contextmanager
def greeting_host(end: str = "") -> Iterator[int]:
    """Its port; `end` is how what it says ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            said = f"hello from {self.headers['Host']}{end}".encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()
