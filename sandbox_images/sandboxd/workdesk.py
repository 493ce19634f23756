"""What is done by processes that run as the commands' user, and never by the daemon itself.

A root daemon that opened a path itself would read `/proc/1/environ` and its own state folder for the agent, and one
that connected somewhere itself would reach what commands cannot.
"""

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any

from sandboxd.execcore.host import ProcessHost
from sandboxd.execcore.spec import ExecSpec, ExecState, Outcome, SpawnError
from sandboxd.requests import MAX_READ_BYTES
from sandboxd.results import Result, failed_result, file_failure, file_result
from sandboxd.workers import worker

Fields = dict[str, Any]
Shape = Callable[[Fields, bytes], Fields]
"""What the result tells of the worker's fields and the bytes that it read."""

_ANSWER_BYTES = MAX_READ_BYTES + 64 * 1024
_ENV = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}  # the agent's variables have no say in the worker


class WorkDesk:
    """Does the requests of one of the daemon's folders of worker modules, each in a process of its own.

    Args:
        folder, modules: as of `worker`.
        noun: what a request is called in messages.
        interpreter: Python that the commands' user can execute.
    """

    def __init__(
        self,
        host: ProcessHost,
        folder: str,
        modules: tuple[str, ...],
        *,
        noun: str,
        interpreter: str = sys.executable,
    ) -> None:
        self._host = host
        self._noun = noun
        self._argv = worker(interpreter, folder, *modules)

    async def work(
        self,
        header: Mapping[str, Any],
        content: bytes = b"",
        *,
        start_to_end_s: float,
        changes: bool = True,
        shape: Shape = lambda fields, _: fields,
        fds: tuple[int, ...] = (),
    ) -> Result:
        """Does one request and tells its result.

        Args:
            header: its kind and fields.
            content: the bytes that go with it.
            start_to_end_s: seconds after which it is ended.
            changes: a worker that dies leaves it unknown what it did.
            fds: descriptors that the worker gets, under the numbers that `header` names.
            shape: makes the result's fields of what the worker says, which may be a command's word.
        """
        spec = ExecSpec(
            argv=self._argv,
            cwd="/",
            env=_ENV,
            start_to_end_s=start_to_end_s,
            grace_s=0.0,
            stdin=json.dumps(header).encode() + b"\n" + content,
            head_bytes=_ANSWER_BYTES,
            tail_bytes=0,
            fds=fds,
        )
        try:
            execution = self._host.start(spec)
        except SpawnError as error:
            return failed_result(error.reason, str(error))
        outcome = await self._host.run(execution)
        answer = _answer(outcome)
        if answer is None:
            return self._no_answer(outcome, changes=changes)
        fields, data = answer
        if "refused" in fields:
            return file_failure(outcome, ExecState.FAILED, str(fields["refused"]), str(fields["message"]))
        return file_result(outcome, shape(fields["fields"], data))

    def _no_answer(self, outcome: Outcome, *, changes: bool) -> Result:
        """What a worker that did not answer may have done: reading changes nothing, anything else is unknown."""
        reason = outcome.reason or "io"
        message = f"The process that does {self._noun}s ended without an answer."
        if reason == "timeout":
            message = f"The {self._noun} took too long and was ended."
        if changes:
            message += " Whether anything changed is unknown: look before you repeat it."
        return file_failure(outcome, ExecState.LOST if changes else ExecState.FAILED, reason, message)


def _answer(outcome: Outcome) -> tuple[dict[str, Any], bytes] | None:
    """The worker's answer; None when it died, or when a command of the same user made it say nonsense."""
    if outcome.exit_code != 0 or outcome.reason is not None:
        return None
    line, _, data = outcome.captured.head.partition(b"\n")
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return None
    sound = isinstance(fields, dict) and (
        isinstance(fields.get("fields"), dict) or isinstance(fields.get("refused"), str)
    )
    return (fields, data) if sound else None
