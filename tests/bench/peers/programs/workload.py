"""The same work for every engine: its steps one after the other, many runs at once, or a run that is killed."""

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor

STEP_S = 0.003
"""What a step of the run that is killed takes, so that kills fall into steps and not only between them."""


def main(engine, folder, words):
    """Does what the words say and prints its figures as JSON.

    `steps N`: seconds of a run of N steps, after a short one. `wide RUNS N`: seconds of as many runs of N steps
    at once. `work N`: a run of N steps, begun or taken up, that appends each step's number to `effects`.
    """
    what, *numbers = words
    MEASURES[what](engine, folder, *map(int, numbers))


def steps(engine, folder, number):
    made = engine(folder, lambda _: None)
    made.run("warm", 10)
    before, started = _written(), time.perf_counter()
    made.run("measured", number)
    seconds = time.perf_counter() - started
    _tell(seconds=seconds, bytes=_written() - before)
    made.close()


def wide(engine, folder, runs, number):
    made = engine(folder, lambda _: None)
    made.run("warm", 10)
    started = time.perf_counter()
    with ThreadPoolExecutor(runs) as pool:
        list(pool.map(lambda index: made.run(f"run-{index}", number), range(runs)))
    _tell(seconds=time.perf_counter() - started)
    made.close()


def work(engine, folder, number):
    with (folder / "effects").open("ab", buffering=0) as effects:

        def effect(step):
            effects.write(b"%d\n" % step)
            time.sleep(STEP_S)

        made = engine(folder, effect)
        made.run("killed", number)
        made.close()


MEASURES = {"steps": steps, "wide": wide, "work": work}


def _written():
    with open("/proc/self/io") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("write_bytes:"))


def _tell(**figures):
    print(json.dumps({**figures, "cores": os.cpu_count()}), flush=True)
