"""What calls cost: exact decimal USD, None wherever a price or the usage is unknown."""

from dataclasses import dataclass
from decimal import Decimal

from nodus_core.inference.exchange import ModelRequest, Usage
from nodus_core.inference.target import Prices, Target
from nodus_core.inference.wires import encode_request

_TOKENS_PER_PRICE = 6
"""Prices are per ten to the sixth tokens."""

_TOOLS_OVERHEAD = 1024
"""Tokens of the text that a provider adds of its own when there are tools; the largest published is below 900."""

_CALL_OVERHEAD = 64
"""Tokens of the frame that a provider puts around any conversation."""


@dataclass(frozen=True)
class Measured:
    """What an earlier request of the same conversation to the same model took: its body's `size` in bytes and
    the `tokens` of its whole prompt, as the provider counted them (`Usage.prompt_tokens`). `left_out` is the number
    of messages of results whose bodies it did not hold."""

    size: int
    tokens: int
    left_out: int = 0


def size_of(request: ModelRequest) -> int:
    """Bytes of a request's body: what `Measured.size` counts."""
    return len(encode_request(request))


def cost(target: Target, usage: Usage | None) -> Decimal | None:
    """USD of a call, exact. None when the usage or a price that it needs is unknown; then the reserve is booked."""
    if usage is None:
        return None
    prices = _prices(target, usage.prompt_tokens)
    return _sum(
        (usage.input_tokens, prices.input),
        (usage.output_tokens, prices.output),
        (usage.cache_read_tokens, _either(prices.cache_read, prices.input)),
        (usage.cache_write_tokens, _either(prices.cache_write, prices.input)),
    )


def upper_bound(request: ModelRequest, measured: Measured | None = None) -> Decimal | None:
    """USD that the call costs at most, None when a price is unknown (NODQ-89).

    It is the most input tokens at the dearest input price, and the output limit at the output price.
    """
    tokens = most_input_tokens(request, measured)
    prices = _prices(request.target, tokens)
    dearest = max((price for price in (prices.input, prices.cache_write) if price is not None), default=None)
    return _sum((tokens, None if prices.input is None else dearest), (request.output_limit, prices.output))


def most_input_tokens(request: ModelRequest, measured: Measured | None = None) -> int:
    """A number of tokens that the prompt cannot exceed.

    Tokenizers of both wires work on bytes, so no text has more tokens than bytes; the body's JSON has more bytes
    than the messages it carries. What an earlier request of the conversation held was counted already, and only
    what came since is taken by its bytes, which brings the bound near the truth in a long conversation. That holds
    because a conversation is only ever added to, message by message, and a provider frames each message by tokens of
    its own: no token spans what was counted and what came since. What is taken out of it since then is the caller's
    to account for.
    """
    size = size_of(request)
    overhead = _CALL_OVERHEAD + (_TOOLS_OVERHEAD if request.tools else 0)
    if measured is None or measured.size > size:
        return size + overhead
    return min(size, measured.tokens + size - measured.size) + overhead


def _prices(target: Target, prompt_tokens: int) -> Prices:
    if target.long_prompt is not None and prompt_tokens > target.long_prompt.above:
        return target.long_prompt.prices
    return target.prices


def _either(price: Decimal | None, otherwise: Decimal | None) -> Decimal | None:
    return otherwise if price is None else price


def _sum(*parts: tuple[int, Decimal | None]) -> Decimal | None:
    total = Decimal(0)
    for tokens, price in parts:
        if tokens and price is None:
            return None
        total += (tokens * (price or Decimal(0))).scaleb(-_TOKENS_PER_PRICE)
    return total
