"""What was made of a request and of the beginning of its conversation, kept for as long as these themselves.

Every round encodes the whole conversation anew, and only the end of it has changed: without this a run's rounds get
dearer the longer it is (6 ms each for 200 KB). A request's size is asked for its bound, its record and its usage, and
its body is sent: it is encoded once.
"""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from nodus_core.inference.exchange import AssistantMessage, Message, Part

T = TypeVar("T")


class Memo(Generic[T]):
    """What was made of each part, which holds it itself."""

    def of(self, part: Part, make: Callable[[], T]) -> T:
        """What `make` gives, which must be a function of `part` alone."""
        if self not in part.made:
            part.made[self] = make()
        return part.made[self]


class Growth(Generic[T]):
    """What was made of a conversation up to its last reply, which its first message holds."""

    def of(
        self,
        messages: tuple[Message, ...],
        variant: Hashable,
        start: T,
        grow: Callable[[T, tuple[Message, ...]], T],
    ) -> T:
        """What `grow` makes of all messages.

        Args:
            messages: at least one.
            start: what is made of no message.
            grow: adds messages to what was made of those before them. It must be a function of these two and of
                `variant` alone; what it is given ends where a reply follows, or with the conversation.
        """
        held = messages[0].made
        begun, made = held.get((self, variant), ((), start))
        if begun != messages[: len(begun)]:  # another conversation, or one whose beginning was shortened
            begun, made = (), start
        settled = _before_last_reply(messages)
        if settled > len(begun):
            begun, made = messages[:settled], grow(made, messages[len(begun) : settled])
            held[self, variant] = begun, made
        return grow(made, messages[len(begun) :])


def _before_last_reply(messages: tuple[Message, ...]) -> int:
    replies = (at for at in range(len(messages) - 1, -1, -1) if isinstance(messages[at], AssistantMessage))
    return next(replies, 0)
