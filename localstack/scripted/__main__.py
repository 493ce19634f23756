"""`python -m localstack.scripted`: starts the scripted model server on loopback."""

import argparse
import asyncio
import os
import secrets
import signal
from pathlib import Path

from aiohttp import web

from localstack.daemons import free_port, is_free, read_port
from localstack.scripted.server import make_server

_HOST = "127.0.0.1"


def main() -> None:
    """Reads the options and serves until SIGTERM or SIGINT."""
    os.umask(0o077)  # the record holds prompts
    options = _options()
    key = read_key(options.key_file)
    port = read_port(options.last_port_file) if options.last_port_file else None
    if port is None or not is_free(port):
        port = free_port()
    asyncio.run(serve(options.scripts, options.state, key, port, options.port_file))


def read_key(file: Path) -> str:
    """The key in the file; a new random one, readable by its owner only, where there is no file yet."""
    if file.exists():
        key = file.read_text(encoding="utf-8").strip()
        if not key:
            raise SystemExit(f"scripted: the key file {file} is empty: delete it, and a new key is made")
        return key
    key = f"scripted-{secrets.token_hex(24)}"
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
        opened.write(key + "\n")
    return key


async def serve(scripts: list[Path], state: Path, key: str, port: int, port_file: Path | None) -> None:
    """Serves until a signal ends it. `port_file` gets the port once it listens."""
    if port_file is not None:
        port_file.unlink(missing_ok=True)  # of a server before this one, that nobody may take for ours
    stop = asyncio.Event()
    for signum in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(signum, stop.set)
    runner = web.AppRunner(make_server(scripts, state, key).app(), access_log=None, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, _HOST, port, shutdown_timeout=1)
    await site.start()
    if port_file is not None:
        written = port_file.with_suffix(".new")
        written.write_text(f"{port}\n", encoding="utf-8")
        written.replace(port_file)  # whoever waits for the file never reads half a number
    print(
        f"scripted: listening on http://{_HOST}:{port}, scripts in {', '.join(map(str, scripts))}",
        flush=True,
    )
    try:
        await stop.wait()
    finally:
        await runner.cleanup()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m localstack.scripted", description=__doc__)
    parser.add_argument("--port-file", type=Path, help="file that gets the port once the server listens")
    parser.add_argument(
        "--last-port-file",
        type=Path,
        help="file with the port to take while it is free (default: any free one)",
    )
    parser.add_argument("--key-file", type=Path, required=True, help="file with the key; made when missing")
    parser.add_argument("--state", type=Path, required=True, help="folder for the record of requests")
    parser.add_argument(
        "--scripts", type=Path, action="append", default=[], help="folder of scripts; repeatable"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
