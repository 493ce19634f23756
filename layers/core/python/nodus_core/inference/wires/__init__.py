"""The two wire formats: a request's body as bytes, and a reply out of a response body. Pure.

Assistant messages of the same provider go back as the very text that came (see `json_text`).
"""

from nodus_core.inference.exchange import ModelReply, ModelRequest
from nodus_core.inference.wires import anthropic, openai
from nodus_core.inference.wires.json_text import BadJson, check_nesting, mend_surrogates
from nodus_core.inference.wires.memo import Memo

__all__ = ["BadJson", "decode_reply", "encode_request"]

_BODIES: Memo[bytes] = Memo()


def encode_request(request: ModelRequest) -> bytes:
    """The exact body to send. Raises: ValueError for a conversation that is out of order."""
    encode = anthropic.encode if request.target.wire == "anthropic" else openai.encode
    return _BODIES.of(request, lambda: encode(request))


def decode_reply(request: ModelRequest, body: bytes) -> ModelReply:
    """The reply in a response body of status 200.

    Raises: BadJson when it is not a reply of the target's wire format.
    """
    # A few servers cut a character in two; U+FFFD there loses less than the whole reply would.
    text = mend_surrogates(body.decode("utf-8-sig", errors="replace"))
    check_nesting(text)
    wire = anthropic if request.target.wire == "anthropic" else openai
    return wire.decode(request, text)
