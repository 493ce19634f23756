"""Calls made at once."""

import threading
from collections.abc import Callable
from typing import TypeVar

from nodus_core.kernel.errors import Refusal

T = TypeVar("T")


def together(count: int, work: Callable[[int], T]) -> tuple[list[T], list[Refusal]]:
    """Runs `work` in as many threads, all let go at once."""
    outcomes: list[T] = []
    refusals: list[Refusal] = []
    gate = threading.Barrier(count)

    def one(number: int) -> None:
        gate.wait()
        try:
            outcomes.append(work(number))
        except Refusal as refusal:
            refusals.append(refusal)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) + len(refusals) == count
    return outcomes, refusals
