"""What somebody holds, and so may give: nobody makes a key that is more than his own."""

from dataclasses import dataclass
from datetime import datetime
from typing import Self

from nodus_core.access.permissions import EVERYTHING, scopes
from nodus_core.kernel.errors import Cause
from nodus_core.kernel.times import stamp


@dataclass(frozen=True)
class Rate:
    """How often a key may be used: steadily, and at once above that."""

    per_second: int
    burst: int

    def at_most(self, other: "Rate") -> "Rate":
        """What both of them let through."""
        return Rate(min(self.per_second, other.per_second), min(self.burst, other.burst))


DEFAULT_RATE = Rate(per_second=100, burst=200)
"""Of a key that says nothing, where the deployment says nothing either."""


@dataclass(frozen=True)
class Grant:
    """Permissions in projects, until a moment, at a rate. Without arguments: nothing at all.

    `expires_at`: None is never; `rate`: None is without limit, as the operator has it.
    """

    permissions: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    expires_at: datetime | None = None
    rate: Rate | None = None

    @classmethod
    def everything(cls) -> Self:
        """What the operator holds."""
        return cls(permissions=(EVERYTHING,), projects=(EVERYTHING,))

    @property
    def is_of_all_projects(self) -> bool:
        return EVERYTHING in self.projects

    def excess(self, wanted: "Grant") -> tuple[Cause, ...]:
        """The fields of a key's spec by which `wanted` is more than this; none when it may be given."""
        found: list[Cause] = []
        beyond = sorted(scopes(wanted.permissions) - scopes(self.permissions))
        if beyond:
            # `*` alone says enough: all scopes would follow it.
            words = EVERYTHING if EVERYTHING in beyond else ", ".join(beyond)
            found.append(Cause("spec.permissions", f"your key does not hold {words}"))
        foreign = sorted(set(wanted.projects) - set(self.projects))
        if foreign and not self.is_of_all_projects:
            found.append(Cause("spec.projects", f"your key may not use {', '.join(foreign)}"))
        if self.expires_at is not None and (wanted.expires_at is None or wanted.expires_at > self.expires_at):
            message = f"must be at most {stamp(self.expires_at)}, when your own key expires"
            found.append(Cause("spec.expiresAt", message))
        return (*found, *self._faster(wanted))

    def _faster(self, wanted: "Grant") -> tuple[Cause, ...]:
        own, rate = self.rate, wanted.rate
        if own is None:
            return ()
        limits = (
            ("requestsPerSecond", own.per_second, None if rate is None else rate.per_second),
            ("burst", own.burst, None if rate is None else rate.burst),
        )
        return tuple(
            Cause(f"spec.rateLimit.{name}", f"must be at most {most}, as your own key has it")
            for name, most, asked in limits
            if asked is None or asked > most
        )


NOTHING = Grant()
