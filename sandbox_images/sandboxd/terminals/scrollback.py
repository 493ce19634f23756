"""What a terminal has shown last, by its place in all that it has shown."""

KEPT_BYTES = 256 * 1024
"""How much of the output is kept for those who come back (docs/limits.md)."""


class Scrollback:
    """The last bytes of a stream; places are counted from its very beginning."""

    def __init__(self, most: int = KEPT_BYTES) -> None:
        self._most = most
        self._kept = bytearray()
        self.end = 0

    @property
    def first(self) -> int:
        """The place of the first byte that is still kept."""
        return self.end - len(self._kept)

    def feed(self, data: bytes) -> None:
        """Takes the next bytes; the oldest go when there are too many."""
        self.end += len(data)
        self._kept += data
        if len(self._kept) > self._most:
            del self._kept[: len(self._kept) - self._most]

    def read(self, place: int, most: int) -> tuple[int, bytes]:
        """At most so many bytes from a place on, and where they really begin: later, where the place is forgotten."""
        place = min(max(place, self.first), self.end)
        begin = place - self.first
        return place, bytes(self._kept[begin : begin + most])
