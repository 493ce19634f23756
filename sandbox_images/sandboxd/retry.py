"""Delays between tries: growing, jittered, never less than the server asked for."""

import secrets

_random = secrets.SystemRandom()


def jittered(seconds: float, spread: float = 0.5) -> float:
    """A time between `(1 - spread) * seconds` and `seconds`, so that a thousand daemons do not come at once."""
    return seconds * (1 - spread * _random.random())


class Backoff:
    """The delays of one series of tries.

    Args:
        first_s: longest delay after the first failure; doubled after each further one.
        most_s: longest delay of all.
    """

    def __init__(self, first_s: float = 0.25, most_s: float = 15.0) -> None:
        self._first_s = first_s
        self._most_s = most_s
        self._next_s = first_s

    def failed(self, at_least_s: float = 0.0) -> float:
        """Seconds to wait after a failure; `at_least_s` is what the server asked for."""
        delay = jittered(self._next_s)
        self._next_s = min(self._next_s * 2, self._most_s)
        return max(delay, at_least_s + jittered(self._first_s))

    def succeeded(self) -> None:
        """Begins anew with short delays."""
        self._next_s = self._first_s
