"""Contents on their way, in memory; an address is the name of what it leads to."""

from nodus_core.journal.payloads import Scope


class MemoryTransfers:
    """`Transfers`."""

    def __init__(self) -> None:
        self.contents: dict[str, bytes] = {}

    def address_to_put(self, scope: Scope, name: str, size: int) -> str:
        return f"https://store.test/{scope.org}/{scope.id}/{name}"

    def address_to_get(self, scope: Scope, name: str) -> str:
        return self.address_to_put(scope, name, 0)

    def put(self, scope: Scope, name: str, content: bytes) -> None:
        self.contents[self.address_to_get(scope, name)] = content

    def get(self, scope: Scope, name: str, most: int) -> bytes | None:
        content = self.contents.get(self.address_to_get(scope, name))
        return None if content is None else content[:most]

    def size(self, scope: Scope, name: str) -> int | None:
        content = self.contents.get(self.address_to_get(scope, name))
        return None if content is None else len(content)

    def remove(self, scope: Scope, name: str) -> None:
        self.contents.pop(self.address_to_get(scope, name), None)
