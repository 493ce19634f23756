"""Costs are exact, unknown where something is unknown, and never above the bound that was reserved."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nodus_core.inference import (
    LongPrompt,
    ModelRequest,
    Prices,
    Target,
    ToolSpec,
    Usage,
    UserMessage,
)
from nodus_core.inference.pricing import Measured, cost, most_input_tokens, size_of, upper_bound
from nodus_core.inference.wires import encode_request

CHEAP = Prices(Decimal("0.10"), Decimal("0.50"), Decimal("0.01"), Decimal("0.125"))
DEAR = Prices(Decimal("0.50"), Decimal("2.50"), Decimal("0.05"), Decimal("0.625"))


def target(prices: Prices, long_prompt: LongPrompt | None = None) -> Target:
    return Target("anthropic", "m", "haiku", "anthropic", "m", prices, long_prompt)


def request(text: str, to: Target, max_tokens: int = 100) -> ModelRequest:
    tools = (ToolSpec("run_command", "runs", {"type": "object"}),)
    return ModelRequest(to, "system", (UserMessage(text),), tools, max_tokens)


def test_a_cost_is_exact_to_the_last_digit() -> None:
    assert cost(target(CHEAP), Usage(1, 1, 1, 1)) == Decimal("0.000000735")
    assert cost(target(CHEAP), Usage(0, 0)) == 0


def test_a_cost_is_unknown_without_usage_or_a_price_that_it_needs() -> None:
    assert cost(target(CHEAP), None) is None
    assert cost(target(Prices(input=Decimal(1))), Usage(5, 1)) is None
    assert cost(target(Prices(input=Decimal(1))), Usage(5, 0)) == Decimal("0.000005")
    assert upper_bound(request("x", target(Prices()))) is None
    assert upper_bound(request("x", target(Prices(Decimal(1), None)))) is None
    assert upper_bound(request("x", target(Prices(None, Decimal(1), None, Decimal(1))))) is None


def test_cached_tokens_without_a_price_of_their_own_cost_as_input() -> None:
    assert cost(target(Prices(Decimal(2), Decimal(4))), Usage(1, 0, 1, 1)) == Decimal("0.000006")


def test_a_long_prompt_costs_its_own_price_on_every_token() -> None:
    to = target(CHEAP, LongPrompt(1000, DEAR))
    assert cost(to, Usage(900, 10, 100)) == Decimal("0.000096")
    assert cost(to, Usage(901, 10, 100)) == Decimal("0.0004805")


@pytest.mark.req("NODQ-89")
@given(st.text(max_size=300), st.integers(1, 5000), st.data())
def test_no_usage_that_the_request_can_have_costs_more_than_its_bound(
    text: str, max_tokens: int, data: st.DataObject
) -> None:
    asked = request(text, target(CHEAP, LongPrompt(400, DEAR)), max_tokens)
    prompt = data.draw(st.integers(0, len(encode_request(asked))))
    written = data.draw(st.integers(0, prompt))
    usage = Usage(prompt - written, data.draw(st.integers(0, max_tokens)), cache_write_tokens=written)
    booked, bound = cost(asked.target, usage), upper_bound(asked)
    assert booked is not None
    assert bound is not None
    assert booked <= bound


@pytest.mark.req("NODQ-89")
def test_what_was_counted_before_is_not_estimated_again() -> None:
    before, after = request("a" * 10_000, target(CHEAP)), request("a" * 10_000 + "b" * 50, target(CHEAP))
    counted = Measured(size_of(before), 1300)
    assert counted.size == len(encode_request(before))
    assert most_input_tokens(after, counted) - 1350 < 2000
    assert most_input_tokens(after) > 10_000


def test_a_count_of_another_conversation_does_not_lower_the_bound() -> None:
    asked = request("short", target(CHEAP))
    assert most_input_tokens(asked, Measured(size=10_000_000, tokens=1)) == most_input_tokens(asked)
    assert most_input_tokens(asked, Measured(size=10, tokens=10_000_000)) == most_input_tokens(asked)
