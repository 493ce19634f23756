"""What was made of a request and of the parts of its conversation, kept for as long as these themselves.

Every round encodes the whole conversation anew, and only the end of it has changed: without this a run's rounds get
dearer the longer it is (6 ms each for 200 KB). A request's size is asked for its bound, its record and its usage, and
its body is sent: it is encoded once.
"""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

from nodus_core.inference.exchange import AssistantMessage, ModelRequest, ToolResult

Part = AssistantMessage | ToolResult | ModelRequest
T = TypeVar("T")


class Memo(Generic[T]):
    """What was made of each part, by what else it was made from."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[Part, dict[Hashable, T]] = WeakKeyDictionary()

    def of(self, part: Part, variant: Hashable, make: Callable[[], T]) -> T:
        """What `make` gives, which must be a function of `part` and `variant` alone."""
        made = self._known.setdefault(part, {})
        if variant not in made:
            made[variant] = make()
        return made[variant]
