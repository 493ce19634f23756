"""The command line of the benchmark."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from localstack.testing import TestCloud
from tests.bench import billed, costs, durability, hotloop, latency, profiling, sandboxes, silence, throughput
from tests.bench.cloud import BenchError, measured_cloud
from tests.bench.figures import Table
from tests.bench.machine import Moment, machine, warning
from tests.bench.peers import comparison
from tests.bench.person import Person
from tests.bench.usage import Usage

PARTS = ("loop", "durability", "billed", "latency", "throughput", "peers", "sandbox")
"""What is measured where nothing is named."""

SILENCE = "silence"
"""Takes more than a quarter of an hour, and is measured where it is named."""

DEPLOYED = {"billed", "latency", "throughput", "peers", "sandbox", SILENCE}
ROUNDS = 10
"""Rounds of the deployed runs (`scripts/rounds.yaml`)."""


def main(arguments: list[str]) -> int:
    """Measure and print; the exit code of the process."""
    options = parser().parse_args(arguments)
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(143)
    )  # also then the cloud and what was made in it go away
    begin, tables, code = Moment.now(), list[Table](), 0
    _warn(begin)
    try:
        with measured_cloud(options.state, deployed=bool(DEPLOYED & set(options.parts))) as cloud:
            for table in measured(cloud, options):
                print(table.text(), flush=True)
                tables.append(table)
    except BenchError as error:
        print(f"error: {error}", file=sys.stderr)
        code = 1  # what was measured before is kept
    end = Moment.now()
    tables.append(machine(begin, end, {"rounds, repetitions": f"{options.rounds}, {options.repeat}"}))
    print(tables[-1].text())
    _warn(end)
    if options.json:
        options.json.write_text(json.dumps([table.record() for table in tables], indent=2) + "\n")
    return code


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    made.add_argument(
        "parts",
        nargs="*",
        type=_part,
        default=list(PARTS),
        metavar="PART",
        help=f"of {', '.join(PARTS)} (default: these), {SILENCE}",
    )
    made.add_argument("--json", type=Path, metavar="FILE", help="write the tables there as well")
    made.add_argument(
        "--state",
        type=Path,
        metavar="FOLDER",
        help="state folder of a running cloud to use (started with NODUS_SCRIPTS=tests/bench/scripts);"
        " default: one of its own",
    )
    made.add_argument("--rounds", type=int, default=50, help="rounds of the hot loop's runs (default: 50)")
    made.add_argument("--repeat", type=int, default=5, help="repetitions (default: 5)")
    made.add_argument("--sandboxes", type=int, default=50, help="sandboxes that are started (default: 50)")
    made.add_argument(
        "--at-once", type=_levels, default=[1, 8, 32], metavar="N,…", help="runs at once (default: 1,8,32)"
    )
    made.add_argument("--profile", action="store_true", help="with `loop`: also where the time goes")
    return made


def measured(cloud: TestCloud, options: argparse.Namespace) -> Iterator[Table]:
    """The tables, each as soon as it is measured."""
    if "loop" in options.parts:
        yield from hotloop.measure(cloud.cloud, options.rounds, options.repeat)
        if options.profile:
            print(profiling.profile(None, options.rounds), profiling.profile(cloud.cloud, options.rounds))
    if "durability" in options.parts:
        yield durability.measure(cloud, options.repeat)
    if not DEPLOYED & set(options.parts):
        return
    person = Person(cloud)
    try:
        person.prepare()
        yield from _deployed(cloud, person, options)
    finally:
        person.leave()


def _deployed(cloud: TestCloud, person: Person, options: argparse.Namespace) -> Iterator[Table]:
    if "billed" in options.parts:
        yield from _billed(cloud, person, options.rounds)
    if "latency" in options.parts:
        yield latency.measure(cloud, person, options.repeat)
    if "throughput" in options.parts:
        yield from throughput.measure(cloud, person, options.at_once)
    if "peers" in options.parts:
        yield comparison.measure(cloud, person, options.rounds, options.repeat)
    if "sandbox" in options.parts:
        yield sandboxes.measure(cloud, person, options.sandboxes)
    if SILENCE in options.parts:
        yield silence.measure(person)


def _billed(cloud: TestCloud, person: Person, rounds: int) -> Iterator[Table]:
    counted, usage = billed.count(rounds, billed.TYPICAL_S), Usage(cloud)
    yield billed.used_table(counted)
    yield billed.reads_table(rounds)
    usage.of_run(person, "Bench: 1 round")  # warms what the two that count use
    short, long = usage.of_run(person, "Bench: 1 round"), usage.of_run(person, f"Bench: {ROUNDS} rounds")
    yield costs.used_table(short, long, ROUNDS)
    yield costs.cost_table(counted, short, long, ROUNDS)


def _part(text: str) -> str:
    # Not `choices`: with `*` argparse checks the whole default against them.
    if text not in (*PARTS, SILENCE):
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join((*PARTS, SILENCE))}")
    return text


def _levels(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def _warn(moment: Moment) -> None:
    text = warning(moment)
    if text:
        print(text, file=sys.stderr, flush=True)
