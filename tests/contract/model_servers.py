"""Model servers on loopback for the provider tests: the scripted one, and one that says prepared bytes."""

import json
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[2]
_PATIENCE_S = 30


@dataclass(frozen=True)
class Scripted:
    """A running scripted server; `scripts` is its folder, empty at first."""

    url: str
    key: str
    scripts: Path

    def play(self, text: str) -> None:
        """Makes these the only scripts, and forgets what was asked before."""
        (self.scripts / "test.yaml").write_text(text, encoding="utf-8")
        self.get("/_requests", "DELETE")

    def get(self, path: str, method: str = "GET") -> dict[str, Any]:
        asked = urllib.request.Request(self.url + path, method=method, headers={"x-api-key": self.key})
        with urllib.request.urlopen(asked, timeout=_PATIENCE_S) as answer:
            return json.load(answer)

    def bodies(self) -> list[str]:
        """The bodies of all requests, oldest first."""
        return [entry["body"] for entry in self.get("/_requests")["requests"]]


@contextmanager
def scripted_server(folder: Path, *more_scripts: Path) -> Iterator[Scripted]:
    """Starts `python -m localstack.scripted` as its own process."""
    scripts = folder / "scripts"
    scripts.mkdir(exist_ok=True)
    port_file, key_file = folder / "port", folder / "key"
    port_file.unlink(missing_ok=True)
    command = [
        sys.executable,
        "-m",
        "localstack.scripted",
        "--key-file",
        str(key_file),
        "--state",
        str(folder / "state"),
    ]
    command += ["--port-file", str(port_file)]
    for path in (scripts, *more_scripts):
        command += ["--scripts", str(path)]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.DEVNULL) as process:
        try:
            _wait_for(port_file, process)
            yield Scripted(
                f"http://127.0.0.1:{port_file.read_text().strip()}", key_file.read_text().strip(), scripts
            )
        finally:
            process.terminate()


def _wait_for(file: Path, process: "subprocess.Popen[bytes]") -> None:
    until = time.monotonic() + _PATIENCE_S
    while not file.exists():
        if process.poll() is not None or time.monotonic() > until:
            raise RuntimeError(f"the scripted model server does not start (exit code {process.poll()})")
        time.sleep(0.02)


@dataclass
class Prepared:
    """A server that answers each request with the next prepared body and keeps every request's bytes."""

    url: str
    replies: list[bytes] = field(default_factory=list)
    requests: list[bytes] = field(default_factory=list)


@contextmanager
def prepared_server() -> Iterator[Prepared]:
    prepared = Prepared("")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            prepared.requests.append(self.rfile.read(int(self.headers["Content-Length"])))
            reply = prepared.replies.pop(0)
            self.send_response(200)
            self.send_header("Content-Length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing: the requests are in `requests`."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        prepared.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield prepared
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def dripping_server(head: bytes, drip: bytes, pause_s: float) -> Iterator[str]:
    """A server that answers with `head` at once, and from then on with one `drip` after each pause, without end."""
    over = threading.Event()

    def drips(connection: socket.socket) -> None:
        with connection:
            try:
                connection.recv(65536)
                connection.sendall(head)
                while not over.wait(pause_s):
                    connection.sendall(drip)
            except OSError:
                return  # the client has gone

    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(_PATIENCE_S)
        thread = threading.Thread(target=lambda: drips(listening.accept()[0]))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            over.set()
            thread.join()
