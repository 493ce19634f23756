"""The store of archives in memory. What a sandbox PUTs, a test puts for it: `put` under the address it was given."""

from datetime import timedelta

from nodus_core.journal.payloads import Scope

_BASE = "https://archives.invalid"


class MemoryArchives:
    """`Archives` that live as long as the process; `objects` holds them by their place."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}

    def put_url(self, scope: Scope, name: str, valid: timedelta) -> str:
        return f"{_BASE}/{_place(scope, name)}?put"

    def get_url(self, scope: Scope, name: str, valid: timedelta) -> str:
        return f"{_BASE}/{_place(scope, name)}?get"

    def size(self, scope: Scope, name: str) -> int | None:
        found = self.objects.get(_place(scope, name))
        return None if found is None else len(found)

    def delete(self, scope: Scope, name: str) -> None:
        self.objects.pop(_place(scope, name), None)

    def put(self, url: str, content: bytes) -> None:
        """What whoever has the address does with it."""
        if not url.endswith("?put"):
            raise ValueError("the address is not one to put to")
        self.objects[url.removeprefix(f"{_BASE}/").removesuffix("?put")] = content

    def get(self, url: str) -> bytes | None:
        """What stands at an address."""
        return self.objects.get(url.removeprefix(f"{_BASE}/").removesuffix("?get"))


def _place(scope: Scope, name: str) -> str:
    return f"{scope.org}/{scope.id}/saves/{name}"
