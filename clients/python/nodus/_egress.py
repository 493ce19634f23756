"""What a sandbox may reach (NOD-022, NOD-517)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple


class Egress(NamedTuple):
    """The way out of a sandbox: nowhere, to named hosts, or to the public internet.

    Make it with ``Egress.deny()``, ``Egress.allow(["github.com"])`` or ``Egress.open()``.
    """

    policy: Literal["Deny", "AllowList", "Open"]
    hosts: tuple[str, ...] = ()

    @classmethod
    def deny(cls) -> Egress:
        """No connection leaves the sandbox (what an agent has when nothing is said)."""
        return cls("Deny")

    @classmethod
    def open(cls) -> Egress:
        """The public internet; private, link-local and metadata addresses stay closed."""
        return cls("Open")

    @classmethod
    def allow(cls, hosts: Iterable[str]) -> Egress:
        """HTTPS to these hosts only.

        Raises:
            TypeError: ``hosts`` is one text instead of a list of names.
            ValueError: ``hosts`` is empty; say ``Egress.deny()``.
        """
        if isinstance(hosts, str):
            raise TypeError(f"hosts must be a list: Egress.allow([{hosts!r}])")
        names = tuple(hosts)
        if not names:
            raise ValueError("no host is named; say Egress.deny() to close the sandbox")
        return cls("AllowList", names)

    def to_spec(self) -> dict[str, Any]:
        """The ``spec.network`` of an agent."""
        egress: dict[str, Any] = {"policy": self.policy}
        if self.policy == "AllowList":
            egress["allow"] = list(self.hosts)
        return {"egress": egress}
