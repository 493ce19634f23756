"""Times on the command line: ``8m``, ``1h30m``, ``45s``."""

from __future__ import annotations

import re

import click

from nodus.cli.failures import usage

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")


def seconds(text: str) -> float:
    """The seconds that a duration means.

    Raises:
        Failure: it has no unit, or none that is known.
    """
    if text == "0":
        return 0.0
    if not text or _PART.sub("", text):
        raise usage(
            f"{text!r} is no duration; write it with its unit, such as 30s, 8m or 1h30m", "InvalidDuration"
        )
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))


class Duration(click.ParamType[float]):
    """An option's duration, in seconds."""

    name = "DURATION"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Read the option."""
        return value if isinstance(value, float) else seconds(str(value))


DURATION = Duration()


def shown(value: float) -> str:
    """A number of seconds in at most two units: ``0.4s``, ``12s``, ``3m5s``, ``2h1m``, ``4d``."""
    if value < 10:
        return f"{value:.1f}s"
    whole = int(value)
    days, hours, minutes, rest = whole // 86400, whole // 3600 % 24, whole // 60 % 60, whole % 60
    if days:
        return f"{days}d{hours}h" if hours else f"{days}d"
    if hours:
        return f"{hours}h{minutes}m" if minutes else f"{hours}h"
    if minutes:
        return f"{minutes}m{rest}s" if rest else f"{minutes}m"
    return f"{rest}s"
