"""Results as the control plane gets them (docs/protocols.md §2, common fields)."""

import signal
from datetime import UTC, datetime
from typing import Any

from sandboxd.execcore.shaping import shape_output
from sandboxd.execcore.spec import ExecState, Outcome

Result = dict[str, Any]


def timestamp(moment: datetime) -> str:
    """RFC 3339, UTC, milliseconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def failed_result(reason: str, message: str) -> Result:
    """The command had certainly no effect."""
    return _instant(ExecState.FAILED, reason, message)


def lost_result(reason: str, message: str) -> Result:
    """Nobody knows what the command did."""
    return _instant(ExecState.LOST, reason, message)


def answer_result(fields: dict[str, Any]) -> Result:
    """The answer to an ask that was done without a process."""
    return {**_instant(ExecState.EXITED, None, None), **fields}


def logged_result(outcome: Outcome) -> Result:
    """The result of an `exec` whose output a log has: it stands nowhere else."""
    told = exec_result(outcome)
    return {**told, "output": "", "headBytes": 0, "tailBytes": 0, "droppedBytes": told["rawBytes"]}


def exec_result(outcome: Outcome) -> Result:
    """The result of an `exec`."""
    shown = shape_output(outcome.captured)
    return {
        **_common(outcome, outcome.reason, outcome.message),
        "exitCode": outcome.exit_code,
        "signal": None if outcome.signal is None else signal_name(outcome.signal),
        "output": shown.text,
        "headBytes": shown.head_bytes,
        "tailBytes": shown.tail_bytes,
        "rawBytes": outcome.captured.raw_bytes,
        "droppedBytes": shown.dropped_bytes,
        "outputOpen": outcome.output_open,
        "usage": {"cpuS": outcome.usage.cpu_s, "maxRssKiB": outcome.usage.max_rss_kib},
    }


def terminal_result(outcome: Outcome) -> Result:
    """The result of a terminal: how its program ended. What it has shown is not kept here."""
    return {
        **_common(outcome, outcome.reason, outcome.message),
        "exitCode": outcome.exit_code,
        "signal": None if outcome.signal is None else signal_name(outcome.signal),
        "usage": {"cpuS": outcome.usage.cpu_s, "maxRssKiB": outcome.usage.max_rss_kib},
    }


def file_result(outcome: Outcome, fields: dict[str, Any]) -> Result:
    """The result of a file request that was done."""
    return {**_common(outcome, None, None), **fields}


def file_failure(outcome: Outcome, state: ExecState, reason: str, message: str) -> Result:
    """The result of a file request that was refused, or whose end nobody saw."""
    return {**_common(outcome, reason, message), "state": state.value}


def archive_result(started_at: datetime, fields: dict[str, Any]) -> Result:
    """The result of a folder that was saved or restored."""
    return {**fields, **_since(started_at, ExecState.EXITED, None, None)}


def archive_failure(started_at: datetime, reason: str, message: str) -> Result:
    """The result of a folder that was not saved, or not restored."""
    return _since(started_at, ExecState.FAILED, reason, message)


def _common(outcome: Outcome, reason: str | None, message: str | None) -> Result:
    return {
        "state": outcome.state.value,
        "reason": reason,
        "message": message,
        "startedAt": timestamp(outcome.started_at),
        "endedAt": timestamp(outcome.ended_at),
        "durationMs": round(outcome.duration_s * 1000),
    }


def _instant(state: ExecState, reason: str | None, message: str | None) -> Result:
    return _since(datetime.now(UTC), state, reason, message)


def _since(started_at: datetime, state: ExecState, reason: str | None, message: str | None) -> Result:
    now = max(datetime.now(UTC), started_at)
    return {
        "state": state.value,
        "reason": reason,
        "message": message,
        "startedAt": timestamp(started_at),
        "endedAt": timestamp(now),
        "durationMs": round((now - started_at).total_seconds() * 1000),
    }


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"SIG{number}"
