"""Runs inside a Lambda function's processes: a template imports the handler, its forks answer invocations.

Standard library only, started without site-packages: a function sees its own code and its layers, no more.
One JSON object a line comes into a worker and one goes out over private descriptors, so that nothing the
function prints can be taken for an answer. A marker line on stderr closes the log of each invocation.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import site
import socket
import sys
import time
import traceback
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TextIO

# The longest message between the emulator and a template.
MESSAGE_BYTES = 64 * 1024
END_OF_LOG = "\x1e end of invocation"
# What AWS allows a function to answer synchronously.
RESPONSE_LIMIT_BYTES = 6 * 1024 * 1024


def main(descriptor: int) -> None:
    """A template's life: imports one function, then forks a worker for each message; ends with its socket."""
    control = socket.socket(fileno=descriptor)
    setup = json.loads(control.recv(MESSAGE_BYTES))
    try:
        handler = load(setup)
    except BaseException as error:  # noqa: BLE001 - whatever the handler's module raises is told to the emulator
        control.send(json.dumps(failure(error)).encode()[:MESSAGE_BYTES])
        return
    control.send(b'{"status": "ready"}')
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps the workers
    gc.freeze()  # collections in the forks leave what was imported alone: its pages stay shared
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, MESSAGE_BYTES, 3)
        if not message:
            return
        pid = os.fork()
        if pid == 0:
            control.close()
            become_worker(handler, {**setup, **json.loads(message)}, descriptors)
            os._exit(0)
        for each in descriptors:
            os.close(each)
        control.send(json.dumps({"pid": pid}).encode())


def become_worker(handler: Any, setup: dict[str, Any], descriptors: list[int]) -> None:
    """A worker's life, in the fork: answers what comes in over the first descriptor until it ends."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    requests_in, answers_out, log = descriptors
    os.dup2(log, 2)
    os.dup2(2, 1)  # what the function prints is its log, and cannot be taken for an answer
    os.close(log)
    os.environ["AWS_LAMBDA_LOG_STREAM_NAME"] = setup["stream"]
    requests = os.fdopen(requests_in, "r", encoding="utf-8")
    answers = os.fdopen(answers_out, "w", encoding="utf-8")
    for line in requests:
        answer(answers, serve(handler, setup, json.loads(line)))


def load(setup: dict[str, Any]) -> Any:
    """Put code and layers on the path, code first as on AWS, and import the handler."""
    paths = [setup["code"]]
    for layer in setup["layers"]:
        python = Path(layer) / "python"
        for packages in sorted(python.glob("lib/python*/site-packages")):
            site.addsitedir(str(packages))
        paths.append(str(python))
    sys.path[:0] = paths
    module, _, name = setup["handler"].rpartition(".")
    return getattr(importlib.import_module(module.replace("/", ".")), name)


def serve(handler: Any, setup: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    """Run one invocation; the answer says what it returned or raised."""
    trace = request.get("trace")
    if trace:
        os.environ["_X_AMZN_TRACE_ID"] = trace
    else:
        os.environ.pop("_X_AMZN_TRACE_ID", None)
    try:
        result = json.dumps(handler(request["event"], context(setup, request)))
        if len(result) > RESPONSE_LIMIT_BYTES:
            raise ResponseSizeTooLarge(
                f"Response payload size exceeded maximum of {RESPONSE_LIMIT_BYTES} bytes"
            )
    except SystemExit as error:
        return {"status": "error", "error": f"Runtime exited: {error}", "errorType": "Runtime.ExitError"}
    except BaseException as error:  # noqa: BLE001 - an environment outlives whatever its handler raises
        print(f"[ERROR] {''.join(traceback.format_exception(error))}", file=sys.stderr)  # as Lambda's runtime
        return failure(error)
    finally:
        sys.stdout.flush()
        print(END_OF_LOG, file=sys.stderr, flush=True)
    return {"status": "ok", "result": json.loads(result)}


class ResponseSizeTooLarge(Exception):
    """The answer is larger than Lambda would carry."""


def context(setup: dict[str, Any], request: dict[str, Any]) -> SimpleNamespace:
    """The context object of one invocation."""
    deadline = time.monotonic() + request["timeoutS"]
    return SimpleNamespace(
        function_name=setup["name"],
        function_version=setup["version"],
        invoked_function_arn=request["arn"],
        memory_limit_in_mb=setup["memory"],
        aws_request_id=request["id"],
        log_group_name=f"/aws/lambda/{setup['name']}",
        log_stream_name=setup["stream"],
        identity=None,
        client_context=None,
        get_remaining_time_in_millis=lambda: max(0, int((deadline - time.monotonic()) * 1000)),
    )


def failure(error: BaseException) -> dict[str, Any]:
    """An error as Lambda reports it: its class by name, its frames."""
    return {
        "status": "error",
        "error": str(error),
        "errorType": type(error).__name__,
        "trace": traceback.format_exception(error),
    }


def answer(answers: TextIO, value: dict[str, Any]) -> None:
    answers.write(json.dumps(value) + "\n")
    answers.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]))
