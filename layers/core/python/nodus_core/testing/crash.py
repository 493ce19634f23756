"""Crashing on purpose: each commit has a point before and after it, named `<commit>.before|after`."""


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
