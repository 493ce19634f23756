"""The vault port: the values of Secrets, encrypted, apart from everything else that is stored."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from nodus_core.kernel.errors import TerminalError


class ValueGone(TerminalError):
    """The vault has no such value: its Secret was removed, here or there. The message names no value."""


@dataclass(frozen=True)
class VaultPlace:
    """Whose values: the Secret with this uid, in this project."""

    org: str
    project: str
    uid: str


class Vault(Protocol):
    """Values by place and version. Errors never show a value.

    Each call raises `RetryableError` when trying later may help, and `TerminalError` when it is refused.
    """

    def create(self, place: VaultPlace, values: Mapping[str, str]) -> str:
        """Keeps the first values of a place, and returns their version."""
        ...

    def replace(self, place: VaultPlace, values: Mapping[str, str]) -> str:
        """Keeps further values beside those of other versions, and returns theirs. Raises `ValueGone`."""
        ...

    def read(self, place: VaultPlace, version: str) -> Mapping[str, str]:
        """The values of one version. Raises `ValueGone`."""
        ...

    def remove(self, place: VaultPlace) -> None:
        """Removes all versions at once; a place that holds nothing is fine."""
        ...
