"""What a campaign prints: a live line, a table, and everything about what went wrong."""

from __future__ import annotations

import json
import re
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.crash.campaign.judging import PROBLEMS
from tests.crash.campaign.ledger import Fault, Ledger, RunRecord

_MARK = re.compile(r"\[([0-9a-f]{8})\]")
"""Stands in front of each run's prompt."""

AROUND_S = 5.0
"""Seconds before a run's beginning from which on faults are shown with it."""


class LiveLine:
    """One line that is written over; on a pipe, a new one now and then."""

    def __init__(self) -> None:
        self._shown = 0.0

    def show(self, text: str) -> None:
        if sys.stdout.isatty():
            print(f"\r{text:<110}", end="", flush=True)
        elif time.monotonic() - self._shown > 15:
            self._shown = time.monotonic()
            print(text, flush=True)

    def end(self) -> None:
        if sys.stdout.isatty():
            print()


def by_itself(log: Path) -> Counter[str]:
    """What went wrong in the cloud by itself, by kind (`localstack.faults.weather`)."""
    return Counter(entry["fault"] for entry in _entries(log))


def asked(folder: Path) -> dict[str, list[str]]:
    """Bodies of the requests that the model server has got, by the mark of their run."""
    found: dict[str, list[str]] = {}
    for log in (folder / "requests.1.jsonl", folder / "requests.jsonl"):
        for entry in _entries(log):
            body = str(entry.get("body", ""))
            mark = _MARK.search(body)
            if mark:
                found.setdefault(mark[1], []).append(body)
    return found


def table(
    ledger: Ledger, found: Iterable[tuple[RunRecord, str, str]], again: int, weather: Mapping[str, int]
) -> str:
    """The outcome of a campaign."""
    counts = Counter(kind for _, kind, _ in found)
    runs = Counter(run.kind for run in ledger.runs)
    ends = Counter(run.phase for run in ledger.runs)
    rows = [
        *_section("kills", Counter(fault.kind for fault in ledger.faults)),
        *_section("went wrong by itself", weather),
        *_section("runs", runs),
        *_section("ends", ends),
        ("lines resumed", str(len(ledger.resumed))),
        (
            "seconds to resume, median",
            _seconds(statistics.median(ledger.resumed) if ledger.resumed else None),
        ),
        ("seconds to resume, most", _seconds(max(ledger.resumed, default=None))),
        ("steps done", str(ledger.steps_done())),
        *_section("messages", _messages(ledger.runs)),
        ("runs parked, each checked", str(sum(run.parked for run in ledger.runs))),
        *_section("commands asked about", _asked(ledger.runs)),
        ("managed model calls made again", str(again)),
        *((name, str(counts[name])) for name in PROBLEMS),
    ]
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:<{width}}  {value:>7}" for name, value in rows)


def _messages(runs: Iterable[RunRecord]) -> Counter[str]:
    """Messages by what became of them."""
    counts: Counter[str] = Counter()
    for run in runs:
        left = [entry["messageKey"] for entry in run.status.get("undelivered", [])]
        for prompt in run.prompts[1:]:
            end = "refused" if prompt.refused else "undelivered" if prompt.key in left else "read"
            counts[end] += 1
    return counts


def _asked(runs: Iterable[RunRecord]) -> Counter[str]:
    """Commands of unknown outcome by what the run was told of them."""
    return Counter(each.outcome or "canceled" for run in runs for each in run.uncertain)


def story(run: RunRecord, texts: Iterable[str], ledger: Ledger) -> str:
    """All about a run that went wrong."""
    end = run.ended_at or time.time()
    around = [fault for fault in ledger.faults if run.started_at - AROUND_S <= fault.at <= end + AROUND_S]
    lines = [
        f"run {run.name} ({run.kind}), from {_clock(run.started_at)} to {_clock(end)}, {run.phase} {run.reason}"
    ]
    lines += [f"  wrong: {text}" for text in texts]
    lines += [f"  {prompt.key}: turn {prompt.turn}, refused {prompt.refused}" for prompt in run.prompts[1:]]
    lines += [f"  asked: {asked}" for asked in run.uncertain]
    lines += [f"  {json.dumps(turn)}" for turn in run.status.get("turns", [])]
    lines += [f"  {json.dumps(step)}" for step in run.steps]
    lines += ["  what was done to the cloud meanwhile:", *(f"    {_fault(fault)}" for fault in around)]
    return "\n".join(lines)


def _fault(fault: Fault) -> str:
    return f"{_clock(fault.at)} {fault.number:4} {fault.kind}: {fault.about}"


def _section(title: str, counts: Mapping[str, int]) -> list[tuple[str, str]]:
    return [
        (title, str(sum(counts.values()))),
        *((f"  {name}", str(counts[name])) for name in sorted(counts)),
    ]


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _clock(at: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at))


def _entries(log: Path) -> Iterable[dict[str, str]]:
    """The lines of a log whose writer may have been killed while it wrote one."""
    if not log.exists():
        return
    with log.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                yield json.loads(line)
            except ValueError:
                continue
