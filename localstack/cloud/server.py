"""Serves MiniStack inside our own process, on loopback only.

The environment is prepared by whoever starts it (`localstack.daemons`): MiniStack reads it when imported,
which is why its modules are imported here inside functions.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import resource
import shutil
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from hypercorn.asyncio import serve  # pyright: ignore[reportMissingImports]
from hypercorn.config import Config  # pyright: ignore[reportMissingImports]

from localstack import supervise
from localstack.cloud import tls
from localstack.cloud.gate import Gate
from localstack.cloud.packages import PackageStore
from localstack.cloud.write_ahead import WriteAhead, WriteAheadLog
from localstack.endpoints import Cloud, NoCloudError
from localstack.faults.plug import Plug
from localstack.paths import State

logger = logging.getLogger("localstack.cloud")

# Unpacked folders kept over a restart: code and layers of the newest deploys.
KEPT_PACKAGES = 24


def main() -> int:
    """Serve until SIGTERM, then save the state; the exit code of the process."""
    os.umask(0o077)  # states and logs hold secrets
    state = State.current()
    port = int(os.environ["GATEWAY_PORT"])
    prepare_folders(state)
    raise_descriptor_limit()
    store = PackageStore(state.emulator / "packages")
    store.keep_newest(KEPT_PACKAGES)
    emulator: Any = importlib.import_module("ministack.app")
    workers: Any = importlib.import_module("localstack.cloud.workers")
    workers.install(store, state.logs / "functions.log")
    corrections: Any = importlib.import_module("localstack.cloud.corrections")
    corrections.install()
    persistence: Any = importlib.import_module("ministack.core.persistence")
    log = WriteAheadLog(state.emulator / "write-ahead.log")
    plug = Plug.wanted(state)
    if plug is not None:
        plug.into(workers)
    asyncio.run(run(WriteAhead(emulator.app, log, emulator, persistence), port, state, plug))
    workers.runtime.reset()  # ends the worker processes; calls that still run end with them
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    # Executions of state machines run on threads that nothing stops; the state is saved already.
    os._exit(0)


async def run(application: WriteAhead, port: int, state: State, plug: Plug | None) -> None:
    """Serve; SIGTERM and SIGINT end it, SIGUSR1 saves the state, SIGUSR2 warms the functions.

    `plug`: what goes wrong on purpose.
    """
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    tasks: set[asyncio.Task[None]] = set()

    def save() -> None:
        task = loop.create_task(snapshot(application, state))
        tasks.add(task)  # the loop itself holds tasks by weak references only
        task.add_done_callback(tasks.discard)

    loop.add_signal_handler(signal.SIGUSR1, save)
    loop.add_signal_handler(signal.SIGUSR2, warm, state)
    config = Config()
    config.insecure_bind = [f"127.0.0.1:{port}"]
    config.bind = [f"127.0.0.1:{os.environ['TLS_PORT']}"]
    certificate, key = tls.ensure(state)
    config.certfile, config.keyfile = str(certificate), str(key)
    config.alpn_protocols = ["http/1.1"]
    config.keep_alive_timeout = 75
    config.graceful_timeout = 2
    config.websocket_ping_interval = 30
    control = await plug.listen() if plug else None
    served = plug.around(application) if plug else application
    await serve(Gate(served, lambda: api_path(state)), config, shutdown_trigger=stop.wait)  # type: ignore[arg-type]
    if control is not None:
        control.close()


def api_path(state: State) -> str | None:
    """The path of the deployed REST API, None before the first deploy."""
    try:
        cloud = Cloud.load(state)
        return cloud.api_url.removeprefix(cloud.endpoint)
    except NoCloudError:
        return None


async def snapshot(application: WriteAhead, state: State) -> None:
    """Save the state of every service, and count it, so that whoever asked sees when it is done."""
    if await application.snapshot():
        supervise.count(state, supervise.SNAPSHOTS)


def warm(state: State) -> None:
    """Start workers ahead of their first call, off the event loop: they sign in to it.

    From then on they can hear of what ended with the emulator before.
    """
    warming: Any = importlib.import_module("localstack.cloud.warming")
    corrections: Any = importlib.import_module("localstack.cloud.corrections")

    def work() -> None:
        logger.info("%d functions are warm", warming.warm_all())
        if told := corrections.tell_of_ended_executions():
            logger.info("%d executions had ended with the emulator before", told)
        supervise.count(state, supervise.WARMINGS)

    threading.Thread(target=work, name="warming", daemon=True).start()


def prepare_folders(state: State) -> None:
    """A fresh folder for temporary files: a process that was killed left its own behind."""
    temporary = Path(os.environ["TMPDIR"])
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True, mode=0o700)
    state.create()


def raise_descriptor_limit() -> None:
    """Every worker and every waiting client holds descriptors; the usual soft limit is 1024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
