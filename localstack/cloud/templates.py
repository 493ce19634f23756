"""Workers by fork: a function's code is imported once, by a template; each worker is a fork of it.

Importing the line function's packages takes a core about two seconds, and each concurrent call has a worker of
its own. A fork takes milliseconds and shares the template's memory.
"""

from __future__ import annotations

import array
import json
import logging
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections import deque
from typing import Any, TextIO

from localstack.cloud import worker_program

logger = logging.getLogger("localstack.templates")

READY_WAIT_S = 60.0
FORK_WAIT_S = 10.0
# What is kept of an import's output, for the message when it fails.
KEPT_LINES = 200
LINE_BYTES = 4096


class TemplateError(Exception):
    """A template could not import its function, or is gone."""


class Forked:
    """A worker process that is no child of ours: what `subprocess.Popen` would offer, by its pidfd."""

    def __init__(self, pid: int, pidfd: int, stdin: TextIO, stdout: TextIO, stderr: TextIO) -> None:
        self.pid = pid
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self._pidfd = pidfd

    def poll(self) -> int | None:
        """None while it runs; its exit code is its template's to know."""
        return 0 if self._has_ended(0) else None

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> int:
        """Waits for its end. Raises subprocess.TimeoutExpired, as a Popen does."""
        if not self._has_ended(timeout):
            raise subprocess.TimeoutExpired(f"worker {self.pid}", timeout or 0)
        return 0

    def _has_ended(self, timeout: float | None) -> bool:
        # Not `select`, which takes no descriptor above 1,023: a busy cloud has more.
        ended = select.poll()
        ended.register(self._pidfd, select.POLLIN)
        return bool(ended.poll(None if timeout is None else timeout * 1000))

    def _signal(self, number: signal.Signals) -> None:
        try:
            signal.pidfd_send_signal(self._pidfd, number)
        except ProcessLookupError:
            logger.debug("worker %d had ended", self.pid)

    def __del__(self) -> None:
        os.close(self._pidfd)


class Template:
    """A process that has imported one function and forks workers of it when it is asked."""

    def __init__(self, setup: dict[str, Any], environment: dict[str, str]) -> None:
        """Starts it and waits until the function is imported. Raises `TemplateError` with what it wrote."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket = ours
        self._lock = threading.Lock()
        with theirs:
            self._process = subprocess.Popen(
                # -S: no site-packages; -s: nor the user's own; -P: nor our folder. The interpreter is the one that built the layers.
                [
                    *(sys._base_executable, "-S", "-s", "-P"),  # type: ignore[attr-defined]
                    *(worker_program.__file__, str(theirs.fileno())),
                ],
                cwd=setup["code"],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
            )
        self._wrote: deque[bytes] = deque(maxlen=KEPT_LINES)
        self._reader = threading.Thread(target=self._read_stderr, daemon=True)
        self._reader.start()  # at once: an import that writes more than a pipe holds would wait for ever
        ready = self._talk(setup, READY_WAIT_S)
        if ready is None or ready["status"] != "ready":
            self.stop()
            self._reader.join()
            wrote = b"".join(self._wrote).decode(errors="replace")
            raise TemplateError(f"{(ready or {}).get('error', 'it gave no answer')}\n{wrote}".rstrip())

    def fork(self, stream: str) -> Forked:
        """A new worker; its log goes to the stream of this name. Raises `TemplateError`."""
        pipes = [os.pipe() for _ in range(3)]
        (in_read, in_write), (out_read, out_write), (err_read, err_write) = pipes
        theirs, ours = (in_read, out_write, err_write), (in_write, out_read, err_read)
        try:
            answer = self._talk({"stream": stream}, FORK_WAIT_S, theirs)
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        try:
            if answer is None:
                raise TemplateError("the template is gone")
            pidfd = os.pidfd_open(answer["pid"])
        except (TemplateError, ProcessLookupError) as error:
            for descriptor in ours:
                os.close(descriptor)
            raise TemplateError(f"no worker was started: {error}") from error
        modes = ("w", "r", "r")
        streams = [
            os.fdopen(descriptor, mode, encoding="utf-8", errors="replace", buffering=1)
            for descriptor, mode in zip(ours, modes, strict=True)
        ]
        return Forked(answer["pid"], pidfd, *streams)

    def alive(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> None:
        """Ends the template; its workers live on until their input ends."""
        self._socket.close()
        self._process.kill()
        self._process.wait()

    def _read_stderr(self) -> None:
        stderr: Any = self._process.stderr
        with stderr:
            while line := stderr.readline(LINE_BYTES):
                self._wrote.append(line)

    def _talk(
        self, message: dict[str, Any], timeout_s: float, descriptors: tuple[int, ...] = ()
    ) -> dict[str, Any] | None:
        """One message and its answer; None when the template is gone or says nothing in time."""
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
        with self._lock:
            try:
                self._socket.settimeout(timeout_s)
                self._socket.sendmsg([json.dumps(message).encode()], rights if descriptors else [])
                answer = self._socket.recv(worker_program.MESSAGE_BYTES)
            except OSError as error:
                logger.warning("a template does not answer: %s", error)
                return None
        return json.loads(answer) if answer else None


class Templates:
    """One template for each function as it is deployed; a new deployment replaces it."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, Template]] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._guard = threading.Lock()

    def of(self, setup: dict[str, Any], environment: dict[str, str]) -> Template:
        """The template of this setup, started when there is none. Raises `TemplateError`."""
        name = setup["name"]
        identity = json.dumps([setup, environment], sort_keys=True)
        with self._guard:
            lock = self._locks.setdefault(name, threading.Lock())
        with lock:
            known = self._known.get(name)
            if known is not None and known[0] == identity and known[1].alive():
                return known[1]
            if known is not None:
                known[1].stop()
                del self._known[name]
            template = Template(setup, environment)
            self._known[name] = (identity, template)
            logger.info("template of %s is ready", name)
            return template
