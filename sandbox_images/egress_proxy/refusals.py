"""Why a connection is not made."""

_PHRASES = {
    400: "Bad Request",
    403: "Forbidden",
    408: "Request Timeout",
    431: "Request Header Fields Too Large",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
}


class Refused(Exception):
    """The proxy does not do what was asked.

    Attributes:
        status: of the answer, where one can still be given.
        word: one word for the log (`policy`, `address`, `resolve`, `connect`, `sni`, `malformed`, `slow`, `busy`).
    """

    def __init__(self, status: int, word: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.word = word

    def response(self) -> bytes:
        """The whole HTTP answer. Messages are made of text that was checked before."""
        body = f"nodus egress: {self}\n".encode("ascii", "backslashreplace")
        head = (
            f"HTTP/1.1 {self.status} {_PHRASES[self.status]}\r\nContent-Type: text/plain\r\n"
            f"Content-Length: {len(body)}\r\nX-Nodus-Egress: {self.word}\r\nConnection: close\r\n\r\n"
        )
        return head.encode() + body
