"""The command line of the campaign: `KILLS=2000 SEED=7 make crash`.

A cloud of its own is started and deployed, runs come and go, and one fault after another is done to it. In the end
everything is left alone until every run has ended, and what came of them is judged by what stands outside: files that
commands wrote to, the record of the model server, and what people were shown.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path

from localstack.processes import kill_below
from localstack.testing import SCRIPTS, SETTINGS, TestCloud, discard, new_cloud
from tests.crash.campaign import report
from tests.crash.campaign.effects import Effects, Outside
from tests.crash.campaign.judging import made_again, problems
from tests.crash.campaign.ledger import Ledger
from tests.crash.campaign.machine import Machine
from tests.crash.campaign.plans import plan
from tests.crash.campaign.resuming import Resuming
from tests.crash.campaign.runs import Driver

OWN_SCRIPTS = Path(__file__).parent / "scripts"
MOST_CLOUD_KILLS = 40
CLOUD_PART = 0.05
"""Of all kills, those that take the whole cloud: one in twenty, and forty at most, as each costs the time of ten."""

CALM_S = 3600.0

FEW_AT_ONCE, MANY_AT_ONCE, MANY_KILLS = 6, 24, 500
"""So many runs at once: a long campaign has time for more, and each step that they do lets it kill again."""

AHEAD = 12
AHEAD_S = 120.0
"""So many kills may come before as many steps are done: a cloud that is killed more often than it works proves
nothing. Some come at once nevertheless, and one that does nothing for so long is killed again."""

RATES = {
    **{"dynamodb": 0.02, "s3": 0.05, "states": 0.1},
    **{"stream": 0.2, "event": 0.2, "timer": 0.1, "execution": 0.1, "call": 0.05},
}
"""What goes wrong by itself all the time, beside the kills."""


def main(arguments: list[str]) -> int:
    """Run the campaign; the exit code of the process."""
    options = parser().parse_args(arguments)
    seed = random.SystemRandom().randrange(2**32) if options.seed is None else options.seed
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = Path(tempfile.mkdtemp(prefix="nc-"))
    folder.chmod(0o711)  # sandboxes run as other users, who must find their files below it
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
    print(f"campaign of {options.kills} kills, SEED={seed}", flush=True)
    try:
        at_once = options.at_once or (MANY_AT_ONCE if options.kills >= MANY_KILLS else FEW_AT_ONCE)
        return Campaign(folder, options.kills, at_once, options.pause, seed).run()
    finally:
        kill_below(folder)
        shutil.rmtree(folder, ignore_errors=True)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m tests.crash.campaign", description=__doc__)
    made.add_argument("--kills", type=int, default=60, help="how many (default: 60)")
    made.add_argument("--seed", type=int, help="of the dice (default: another one each time)")
    made.add_argument(
        "--at-once",
        type=int,
        help=f"runs at once (default: {FEW_AT_ONCE}, and {MANY_AT_ONCE} from {MANY_KILLS} kills on)",
    )
    made.add_argument(
        "--pause", type=float, default=2.0, help="seconds between kills, on average (default: 2)"
    )
    return made


class Campaign:
    """One campaign, from an empty folder to its judgement."""

    def __init__(self, folder: Path, kills: int, at_once: int, pause_s: float, seed: int) -> None:
        self._folder = folder
        self._kills = kills
        self._at_once = at_once
        self._pause_s = pause_s
        self._seed = seed
        self._dice = random.Random(seed)
        self._ledger = Ledger()
        self._over = threading.Event()
        self._last = threading.Event()
        self._line = report.LiveLine()

    def run(self) -> int:
        """The exit code: 0 when nothing is wrong."""
        scripts = os.pathsep.join((str(OWN_SCRIPTS), str(SCRIPTS)))
        cloud = new_cloud({**SETTINGS, "NODUS_FAULTS": "1", "NODUS_SCRIPTS": scripts})
        try:
            cloud.run("up")
            with Effects(cloud.state, self._folder / "effects") as effects, Resuming(cloud) as resuming:
                self._disturb(cloud, effects, resuming)
                self._ledger.resumed = resuming.seconds
                outside = effects.outside()
            return self._judge(cloud, outside)
        finally:
            self._over.set()
            discard(cloud)

    def _disturb(self, cloud: TestCloud, effects: Effects, resuming: Resuming) -> None:
        drivers = [Driver(cloud, effects, self._over) for _ in range(self._at_once)]
        drivers[0].prepare()
        threads = [threading.Thread(target=self._drive, args=(driver,)) for driver in drivers]
        machine = Machine(cloud, self._seed, RATES, resuming)
        machine.weather(RATES)
        for thread in threads:
            thread.start()
        try:
            self._kill(machine, resuming)
            machine.wake()
            machine.weather({})
            self._last.set()
            self._await(threads)
        finally:
            self._over.set()
            for thread in threads:
                thread.join()
            for driver in drivers:
                driver.close()

    def _kill(self, machine: Machine, resuming: Resuming) -> None:
        left_for_cloud = min(MOST_CLOUD_KILLS, int(self._kills * CLOUD_PART))
        whole = set(self._dice.sample(range(1, self._kills + 1), left_for_cloud))
        number = 1
        while number <= self._kills:
            time.sleep(self._dice.expovariate(1 / self._pause_s))
            self._let_work(number)
            resuming.active = [run.uid for run in self._ledger.runs if run.uid and run.ended_at is None]
            fault = machine.take_cloud(number) if number in whole else machine.next(number)
            if fault is None:
                continue
            self._ledger.faults.append(fault)
            number += 1
            self._tell(f"{fault.kind}: {fault.about}")

    def _let_work(self, number: int) -> None:
        """Waits, on a busy machine, until the runs have done their part since the last kills."""
        end = time.monotonic() + AHEAD_S
        while number > self._ledger.steps_done() + AHEAD and time.monotonic() < end:
            time.sleep(0.5)

    def _drive(self, driver: Driver) -> None:
        """Runs one after the other, until no further one shall begin."""
        while not self._last.is_set() and not self._over.is_set():
            try:
                driver.drive(plan(self._dice), self._ledger.runs.append)
            except Exception:  # noqa: BLE001 - a run that nobody looks after has not ended, which is told as wrong
                traceback.print_exc()

    def _await(self, threads: list[threading.Thread]) -> None:
        """Each driver gives up its run in time, unless there is no cloud that answers any more."""
        end = time.monotonic() + CALM_S
        for thread in threads:
            while thread.is_alive() and time.monotonic() < end:
                thread.join(1)
                self._tell("left alone")

    def _tell(self, text: str) -> None:
        runs = self._ledger.runs
        ended = sum(run.ended_at is not None for run in runs)
        parked = sum(run.parked for run in runs)
        done = (
            f"{len(self._ledger.faults)}/{self._kills} kills, {ended}/{len(runs)} runs ended, {parked} parked"
        )
        self._line.show(f"{done}; {text}")

    def _judge(self, cloud: TestCloud, outside: Outside) -> int:
        self._line.end()
        found = problems(self._ledger, outside)
        asked = report.asked(cloud.state.scripted)
        again = sum(made_again(asked.get(run.mark, [])) for run in self._ledger.runs)
        weather = report.by_itself(cloud.state.logs / "faults.log")
        for run in dict.fromkeys(id(run) for run, _, _ in found):
            texts = [f"{kind}: {text}" for one, kind, text in found if id(one) == run]
            record = next(one for one, _, _ in found if id(one) == run)
            print(report.story(record, texts, self._ledger))
        print(report.table(self._ledger, found, again, weather))
        print(f"SEED={self._seed}: {'wrong' if found else 'all is well'}", flush=True)
        return 1 if found else 0
