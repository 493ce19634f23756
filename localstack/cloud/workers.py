"""Lambda workers in place of MiniStack's own, for Python functions.

Why (seen in MiniStack 1.5.33):
- its worker waits up to 50 ms after each call for a line on stderr that may never come; ours is told when
  the log of a call is complete;
- it reports every raised error as `Runtime.HandlerError`, so no Catch by class name matches, and kills the
  worker, which AWS does not;
- it lets functions import whatever the emulator's own environment has, which hides what a layer lacks;
- it hands the emulator's environment to functions, and derives a role's secret from public names.
"""

from __future__ import annotations

import hashlib
import hmac
import importlib
import json
import logging
import os
import secrets
import threading
import time
import uuid
from pathlib import Path
from typing import Any

from localstack.cloud import worker_program
from localstack.cloud.corrections import attribute
from localstack.cloud.function_log import FunctionLog
from localstack.cloud.packages import PackageStore
from localstack.cloud.templates import Forked, TemplateError, Templates

logger = logging.getLogger("localstack.workers")

runtime: Any = importlib.import_module("ministack.core.lambda_runtime")
lambda_service: Any = importlib.import_module("ministack.services.lambda_svc")
sts: Any = importlib.import_module("ministack.services.sts")

LOG_WAIT_S = 1.0
# Variables of a function's configuration that may not replace what the runtime sets.
RESERVED = frozenset({"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "PATH"})

_key = secrets.token_bytes(32)  # of this process: role secrets cannot be derived from names


class WorkerError(Exception):
    """The worker process could not be started or ended while it worked."""


class FunctionWorker(runtime.Worker):
    """One execution environment of a Python function: a process that serves one call at a time."""

    store: PackageStore
    templates: Templates
    function_log: FunctionLog

    def _spawn(self) -> None:
        """Fork the process from its function's template, which has imported the handler.

        Raises:
            WorkerError: the handler cannot be imported.
        """
        layers = [
            lambda_service._resolve_layer_zip(reference) for reference in self.config.get("Layers") or []
        ]
        setup = {
            "code": str(self.store.unpack(self.code_zip)),
            "layers": [str(self.store.unpack(layer)) for layer in layers if layer],
            "handler": self.config["Handler"],
            "name": self.config["FunctionName"],
            "version": self.config.get("Version", "$LATEST"),
            "memory": self.config.get("MemorySize", 128),
        }
        stream = f"{time.strftime('%Y/%m/%d')}/[$LATEST]{uuid.uuid4().hex}"
        try:
            process = self.templates.of(setup, worker_environment(self.config)).fork(stream)
        except TemplateError as error:
            raise WorkerError(f"{self.func_name} cannot start: {error}") from error
        self._proc = process
        self._log: list[str] = []
        self._log_done = threading.Event()
        threading.Thread(target=self._read_log, args=(process,), daemon=True).start()
        logger.info("worker of %s started (pid %d)", self.func_name, process.pid)

    def invoke(
        self,
        event: Any,
        request_id: str,
        *,
        trace_id: str | None = None,
        invoked_function_arn: str | None = None,
        **_unused: Any,
    ) -> dict[str, Any]:
        """Run one call; answers `status`, `result` or `error` with `errorType`, and `log`."""
        timeout_s = float(self.config.get("Timeout") or 3)
        with self._lock:
            if self._proc is None or self._proc.poll() is not None:
                self._spawn()
            process: Any = self._proc
            self._log_done.clear()
            request = {
                "event": event,
                "id": request_id,
                "arn": invoked_function_arn or self.config["FunctionArn"],
                "timeoutS": timeout_s,
                "trace": trace_id,
            }
            try:
                answer = self._exchange(process, request, timeout_s)
            except TimeoutError:
                self._abandon()
                answer = timeout_answer(timeout_s)
            if answer is None:
                self._abandon()
                answer = exit_answer(self.func_name)
            elif not self._log_done.wait(LOG_WAIT_S):
                logger.warning("the log of a call of %s is incomplete", self.func_name)
            return {**answer, "log": self._take_log()}

    def _exchange(self, process: Any, message: dict[str, Any], timeout_s: float) -> dict[str, Any] | None:
        """Send one line and read one; None when the process ended.

        Raises:
            TimeoutError: nothing came within `timeout_s` seconds.
        """
        box: list[dict[str, Any]] = []

        def talk() -> None:
            try:
                process.stdin.write(json.dumps(message) + "\n")
                process.stdin.flush()
                line = process.stdout.readline()
            except (OSError, ValueError) as error:
                logger.debug("a worker of %s went away: %s", self.func_name, error)
                return
            if line:
                box.append(json.loads(line))

        thread = threading.Thread(target=talk, daemon=True)
        thread.start()
        thread.join(timeout_s)
        if thread.is_alive():
            raise TimeoutError
        return box[0] if box else None

    def _read_log(self, process: Forked) -> None:
        """Keep what the function writes, and copy it to the log that people follow."""
        for line in process.stderr:
            if line.rstrip("\n") == worker_program.END_OF_LOG:
                self._log_done.set()
                continue
            self._log.append(line.rstrip("\n"))
            self.function_log.write(f"{self.func_name} {line}")
        self._log_done.set()

    def _take_log(self) -> str:
        lines, self._log = self._log, []
        return "\n".join(lines)

    def _abandon(self) -> None:
        process, self._proc = self._proc, None
        if process is not None:
            process.kill()
            process.wait()


def timeout_answer(timeout_s: float) -> dict[str, Any]:
    message = f"Task timed out after {timeout_s:.2f} seconds"
    return {"status": "error", "error": message, "errorType": "Sandbox.Timedout"}


def exit_answer(name: str) -> dict[str, Any]:
    return {"status": "error", "error": f"{name}: the runtime exited", "errorType": "Runtime.ExitError"}


def worker_environment(config: dict[str, Any]) -> dict[str, str]:
    """The environment of a worker: the function's own variables and what Lambda sets, nothing of ours."""
    region = config["FunctionArn"].split(":")[3]
    own = {
        key: str(value)
        for key, value in ((config.get("Environment") or {}).get("Variables") or {}).items()
        if key not in RESERVED
    }
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "TZ": ":UTC",
        "TMPDIR": os.environ["TMPDIR"],
        "AWS_ENDPOINT_URL": os.environ["AWS_ENDPOINT_URL"],
        "AWS_EC2_METADATA_DISABLED": "true",
        **{name: os.environ[name] for name in ("NODUS_LOCAL_CLOUD",) if name in os.environ},
        **own,
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,
        "AWS_EXECUTION_ENV": f"AWS_Lambda_{config.get('Runtime', 'python')}",
        "AWS_LAMBDA_FUNCTION_NAME": config["FunctionName"],
        "AWS_LAMBDA_FUNCTION_VERSION": config.get("Version", "$LATEST"),
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(config.get("MemorySize", 128)),
        "AWS_LAMBDA_LOG_GROUP_NAME": f"/aws/lambda/{config['FunctionName']}",
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        "_HANDLER": config["Handler"],
        **role_credentials(config),
    }


def role_credentials(config: dict[str, Any]) -> dict[str, str]:
    """Credentials of a session of the function's role; IAM judges what they may do."""
    role: str = config["Role"]
    account = config["FunctionArn"].split(":")[4]
    role_name = role.rsplit("/", 1)[-1]

    def derive(purpose: str) -> str:
        text = f"{purpose}\0{config['FunctionArn']}\0{role}".encode()
        return hmac.new(_key, text, hashlib.sha256).hexdigest()

    access_key = f"ASIA{derive('id')[:16].upper()}"
    session_name = config["FunctionName"][:64]
    session = {
        "Arn": f"arn:aws:sts::{account}:assumed-role/{role_name}/{session_name}",
        "UserId": f"{role_name}:{session_name}",
        "SecretAccessKey": derive("secret"),
        "SessionToken": derive("token"),
    }
    sts.register_session(access_key, session)
    return {
        "AWS_ACCESS_KEY_ID": access_key,
        "AWS_SECRET_ACCESS_KEY": session["SecretAccessKey"],
        "AWS_SESSION_TOKEN": session["SessionToken"],
    }


def execute_warm(func: dict[str, Any], event: Any, request_id: str) -> dict[str, Any]:
    """In place of `lambda_svc._execute_function_warm`: the same, with errors named as on AWS."""
    config = func.get("config") or func
    if not str(config.get("Runtime", "")).startswith("python") or not func.get("code_zip"):
        return _original_execute(func, event, request_id)
    lambda_service._ensure_reaper_thread()
    qualifier = config.get("Version", "$LATEST")
    worker, _ = runtime.acquire_worker(config["FunctionName"], config, func["code_zip"], qualifier=qualifier)
    try:
        trace = lambda_service._xray_trace_id_for_invocation(config)
        answer = worker.invoke(event, request_id, trace_id=trace, invoked_function_arn=config["FunctionArn"])
    except WorkerError as error:
        logger.error("%s", error)
        answer = {"status": "error", "error": str(error), "errorType": "Runtime.ImportModuleError", "log": ""}
    finally:
        runtime.release_worker(worker)
    if answer["status"] == "ok":
        return {"body": answer["result"], "log": answer["log"]}
    body = {"errorMessage": answer["error"], "errorType": answer["errorType"]}
    if "trace" in answer:
        body["stackTrace"] = answer["trace"]
    log = "\n".join([answer["log"], *answer.get("trace", [])])
    return {"body": body, "error": True, "log": log}


_original_execute: Any = attribute(lambda_service, "_execute_function_warm")
_original_class: Any = attribute(runtime, "_worker_class_for")


def worker_class(config: dict[str, Any]) -> Any:
    """In place of `lambda_runtime._worker_class_for`."""
    if str(config.get("Runtime", "")).startswith("python"):
        return FunctionWorker
    return _original_class(config)


def install(store: PackageStore, log_file: Path) -> None:
    """Put these workers in the place of MiniStack's; call once, before it serves."""
    FunctionWorker.store = store
    FunctionWorker.templates = Templates()
    FunctionWorker.function_log = FunctionLog(log_file)
    runtime._worker_class_for = worker_class
    lambda_service._execute_function_warm = execute_warm
