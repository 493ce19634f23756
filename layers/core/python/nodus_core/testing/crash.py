"""Crashing on purpose: each commit has a point before and after it, named `<commit>.before|after`."""

from collections import Counter


class Crash(BaseException):
    """The process died here. Not an `Exception`: nothing may handle it."""


class CrashOnce:
    """Crash points that crash at the n-th passing (from 1) of one point, and list all that were passed."""

    def __init__(self, point: str | None = None, passing: int = 1) -> None:
        self._point = point
        self._left = passing
        self.passed: list[str] = []

    def reach(self, point: str) -> None:
        self.passed.append(point)
        if point == self._point:
            self._left -= 1
            if self._left == 0:
                raise Crash(point)

    def passings(self, without: str | None = None) -> list[tuple[str, int]]:
        """Every passing so far, in order: the point, and its number among those of this point, from 1.

        Points that begin with `without` are left out.
        """
        times: Counter[str] = Counter()
        found: list[tuple[str, int]] = []
        for point in self.passed:
            times[point] += 1
            if without is None or not point.startswith(without):
                found.append((point, times[point]))
        return found
