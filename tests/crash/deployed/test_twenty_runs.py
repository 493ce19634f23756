"""The whole local cloud goes away once, in the middle of twenty runs of all kinds: what a campaign asks of each holds."""

import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice

import pytest

from localstack.processes import kill_marked
from localstack.testing import SCRIPTS, SETTINGS, TestCloud, discard, new_cloud
from tests.crash.campaign.command import OWN_SCRIPTS
from tests.crash.campaign.effects import Effects
from tests.crash.campaign.judging import problems
from tests.crash.campaign.ledger import Fault, Ledger
from tests.crash.campaign.plans import KINDS, plan
from tests.crash.campaign.report import story
from tests.crash.campaign.runs import Driver
from tests.integration.waiting import until

pytestmark = pytest.mark.timeout(1500, func_only=True)

RUNS = 20


def stop(cloud: TestCloud) -> None:
    cloud.run("down")


def kill(cloud: TestCloud) -> None:
    """SIGKILL of every process, sandboxes included."""
    kill_marked(cloud.state.folder)


def sandboxes(cloud: TestCloud) -> frozenset[str]:
    return frozenset(folder.name for folder in cloud.state.sandboxes.glob("*"))


@pytest.mark.req("NOD-073", "NOD-088", "NOD-089", "NOD-090", "NOD-189", "FLD-05", "FLD-12")
@pytest.mark.parametrize("end", [stop, kill])
def test_all_end_right_and_nothing_that_was_answered_is_lost(end: Callable[[TestCloud], None]) -> None:
    cloud = new_cloud({**SETTINGS, "NODUS_SCRIPTS": f"{OWN_SCRIPTS}:{SCRIPTS}"})
    try:
        cloud.run("up")
        with Effects(cloud.state, cloud.state.folder / "effects") as effects:
            ledger = disturbed(cloud, effects, end)
            found = problems(ledger, effects.outside())
    finally:
        discard(cloud)
    assert not found, "\n".join(story(run, [f"{kind}: {text}"], ledger) for run, kind, text in found)
    assert {run.kind for run in ledger.runs} == set(KINDS)


def disturbed(cloud: TestCloud, effects: Effects, end: Callable[[TestCloud], None]) -> Ledger:
    """What twenty runs came to that were at work when the cloud went away."""
    ledger, over, dice = Ledger(), threading.Event(), random.Random(1)
    drivers = [Driver(cloud, effects, over) for _ in range(RUNS)]
    drivers[0].prepare()
    plans = [plan(dice, kind) for kind in islice(cycle(KINDS), RUNS)]
    with ThreadPoolExecutor(RUNS) as pool:
        try:
            driven = [
                pool.submit(driver.drive, what, ledger.runs.append)
                for driver, what in zip(drivers, plans, strict=True)
            ]
            until(lambda: at_work(ledger, effects), lambda number: number >= RUNS // 2)
            at, gone = time.time(), sandboxes(cloud)
            end(cloud)
            gone |= sandboxes(cloud)
            ledger.faults.append(Fault(1, end.__name__, at, f"{at_work(ledger, effects)} at work", gone))
            cloud.run("up")
            for each in driven:
                each.result()
        finally:
            over.set()
            for driver in drivers:
                driver.close()
    return ledger


def at_work(ledger: Ledger, effects: Effects) -> int:
    """Runs that have had an effect, and have not ended."""
    outside = effects.outside()
    return sum(bool(outside.of(run.mark)) and run.ended_at is None for run in list(ledger.runs))
