"""The payload store in memory: same references, same errors as the real one."""

import hashlib
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import BinaryIO

from nodus_core.journal.payloads import Scope
from nodus_core.kernel.errors import CorruptRow
from nodus_core.kernel.ids import digest
from nodus_core.kernel.text import INLINE_LIMIT, Inline, Stored, Text, cut, is_bare


class MemoryPayloads:
    """`Payloads` that live as long as the process. `objects` is what a test looks at or spoils."""

    def __init__(self) -> None:
        self.objects: dict[tuple[Scope, str], str] = {}
        self.files: dict[tuple[Scope, str], bytes] = {}
        self._lock = threading.Lock()

    def put(self, scope: Scope, text: str, *, head: bool = True) -> Text:
        size = len(text.encode())
        if size <= INLINE_LIMIT:
            return Inline(text)
        stored = Stored(digest(text), size, cut(text, INLINE_LIMIT) if head else "")
        with self._lock:
            self.objects[scope, stored.sha256] = text
        return stored

    def put_file(self, scope: Scope, file: BinaryIO) -> Stored:
        file.seek(0)
        content = file.read()
        stored = Stored(hashlib.sha256(content).hexdigest(), len(content), "")
        with self._lock:
            self.files[scope, stored.sha256] = content
        return stored

    def get(self, scope: Scope, text: Text) -> str:
        if isinstance(text, Inline):
            return text.text
        with self._lock:
            found = self.objects.get((scope, text.sha256))
        if found is None:
            raise CorruptRow(f"payload {scope.org}/{scope.id}/{text.sha256} is gone")
        if digest(found) != text.sha256:
            raise CorruptRow(f"payload {scope.org}/{scope.id}/{text.sha256} is not what its hash says")
        return found

    def get_many(self, scope: Scope, texts: Sequence[Text]) -> list[str]:
        return [self.get(scope, text) for text in texts]

    def with_heads(self, scope: Scope, texts: Sequence[Text]) -> list[Text]:
        return [
            replace(text, head=cut(self.get(scope, text), INLINE_LIMIT)) if is_bare(text) else text
            for text in texts
        ]

    def presign(self, scope: Scope, stored: Stored) -> str:
        return f"https://payloads.invalid/{scope.org}/{scope.id}/{stored.sha256}?signature=memory"

    def delete_scope(self, scope: Scope) -> None:
        with self._lock:
            for kept in (self.objects, self.files):
                for key in [key for key in kept if key[0] == scope]:
                    del kept[key]
