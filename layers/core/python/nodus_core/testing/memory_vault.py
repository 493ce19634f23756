"""The vault in memory: same versions, same errors as the real one."""

import threading
from collections.abc import Mapping

from nodus_core.journal.vault import ValueGone, VaultPlace


class MemoryVault:
    """`Vault` that lives as long as the process. `places` is what a test looks at."""

    def __init__(self) -> None:
        self.places: dict[VaultPlace, dict[str, dict[str, str]]] = {}
        self._count = 0
        self._lock = threading.Lock()

    def create(self, place: VaultPlace, values: Mapping[str, str]) -> str:
        with self._lock:
            return self._keep(self.places.setdefault(place, {}), values)

    def replace(self, place: VaultPlace, values: Mapping[str, str]) -> str:
        with self._lock:
            return self._keep(self._versions(place), values)

    def read(self, place: VaultPlace, version: str) -> Mapping[str, str]:
        with self._lock:
            found = self._versions(place).get(version)
        if found is None:
            raise ValueGone(f"Secret {place.uid} has no version {version}")
        return dict(found)

    def remove(self, place: VaultPlace) -> None:
        with self._lock:
            self.places.pop(place, None)

    def _versions(self, place: VaultPlace) -> dict[str, dict[str, str]]:
        if place not in self.places:
            raise ValueGone(f"Secret {place.uid} has no values")
        return self.places[place]

    def _keep(self, versions: dict[str, dict[str, str]], values: Mapping[str, str]) -> str:
        self._count += 1
        versions[f"version-{self._count}"] = dict(values)
        return f"version-{self._count}"
