"""Start a worker of every Python function ahead of its first call.

No call is made: the worker imports its handler and waits, so no handler has to know a warm-up event.
"""

from __future__ import annotations

import importlib
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any

logger = logging.getLogger("localstack.warming")

# Importing a handler keeps a core busy for a second or two.
AT_ONCE = 2


def warm_all() -> int:
    """Warm the functions that have no worker yet; answers how many are warm."""
    service: Any = importlib.import_module("ministack.services.lambda_svc")
    functions = [
        function
        for function in list(service._functions._data.values())
        if str(function["config"].get("Runtime", "")).startswith("python") and function.get("code_zip")
    ]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return sum(pool.map(warm, functions))


def warm(function: dict[str, Any]) -> bool:
    """Start a worker of one function; False when its handler cannot be imported, which the log tells."""
    workers: Any = importlib.import_module("localstack.cloud.workers")
    config = function["config"]
    worker, _ = workers.runtime.acquire_worker(
        config["FunctionName"], config, function["code_zip"], qualifier=config.get("Version", "$LATEST")
    )
    try:
        workers.runtime.ensure_spawned(worker)
    except workers.WorkerError as error:
        logger.error("%s", error)
        return False
    finally:
        workers.runtime.release_worker(worker)
    return True
