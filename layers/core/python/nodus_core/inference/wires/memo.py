"""What was made of a request and of the parts of its conversation, kept for as long as these themselves.

Every round encodes the whole conversation anew, and only the end of it has changed: without this a run's rounds get
dearer the longer it is (6 ms each for 200 KB). A request's size is asked for its bound, its record and its usage, and
its body is sent: it is encoded once.
"""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from nodus_core.inference.exchange import Part

T = TypeVar("T")


class Memo(Generic[T]):
    """What was made of each part, by what else it was made from. The parts hold it themselves."""

    def of(self, part: Part, variant: Hashable, make: Callable[[], T]) -> T:
        """What `make` gives, which must be a function of `part` and `variant` alone."""
        made, name = part.made, (self, variant)
        if name not in made:
            made[name] = make()
        return made[name]
