"""Which family answers a prompt of managed Claude."""

import pytest
from nodus_core.inference import AssistantMessage, ModelReply, StopReason
from nodus_core.inference.catalogue import packaged_catalogue
from nodus_core.inference.routing import (
    ROUTER_MARK,
    Choice,
    fallback,
    nearest,
    routed,
    routing_request,
    settled,
)
from nodus_core.inference.wires import encode_request
from nodus_core.resources.families import FAMILIES, Family

from localstack.scripted import heard

ROUTER = packaged_catalogue().router()


def said(text: str, stop: StopReason = "end") -> ModelReply:
    return ModelReply(AssistantMessage("anthropic", "m", "haiku", "[]", text), stop, None)


@pytest.mark.req("NOD-056")
@pytest.mark.parametrize("text", ["opus", "Opus.", " **OPUS**\n", "The family is opus"])
def test_the_router_s_word_is_the_choice(text: str) -> None:
    assert routed(said(text), FAMILIES) == Choice("opus", "jev")


@pytest.mark.req("NOD-059")
@pytest.mark.parametrize("text", ["", "gpt", "opus or sonnet", "magnumopus"])
def test_a_reply_that_names_no_one_family_means_the_fallback(text: str) -> None:
    assert routed(said(text), FAMILIES) == Choice("sonnet", "fallback")


@pytest.mark.req("NOD-059")
@pytest.mark.parametrize("stop", ["cut", "refused"])
def test_a_reply_that_was_stopped_means_the_fallback(stop: StopReason) -> None:
    assert routed(said("opus", stop), FAMILIES) == Choice("sonnet", "fallback")


@pytest.mark.req("NOD-060", "NOD-012")
@pytest.mark.parametrize(
    ("word", "families", "chosen"),
    [
        ("fable", ("haiku",), "haiku"),
        ("fable", ("haiku", "sonnet"), "sonnet"),
        ("haiku", ("opus", "fable"), "opus"),
        ("sonnet", ("haiku", "opus"), "haiku"),
    ],
)
def test_the_choice_stays_within_the_allowed_families(
    word: str, families: tuple[Family, ...], chosen: Family
) -> None:
    assert routed(said(word), families) == Choice(chosen, "jev")


@pytest.mark.req("NODQ-25")
@pytest.mark.parametrize(
    ("families", "chosen"),
    [
        (FAMILIES, "sonnet"),
        (("haiku", "opus"), "haiku"),
        (("opus", "fable"), "opus"),
        (("fable", "opus"), "opus"),
        (("fable",), "fable"),
    ],
)
def test_the_fallback_is_sonnet_or_the_family_next_to_it(
    families: tuple[Family, ...], chosen: Family
) -> None:
    assert fallback(families) == Choice(chosen, "fallback")


def test_nobody_is_chosen_from_nothing() -> None:
    with pytest.raises(ValueError, match="no family"):
        nearest("sonnet", ())


@pytest.mark.req("NODQ-26")
def test_one_allowed_family_needs_no_call() -> None:
    assert settled(("opus",)) == Choice("opus", "jev")
    assert settled(("haiku", "opus")) is None


@pytest.mark.req("NOD-056")
def test_the_routing_call_is_small_whatever_the_prompt() -> None:
    asked = routing_request("🍸" * 100_000, ("haiku", "opus"), ROUTER, "t1r")
    body = encode_request(asked)
    assert len(body) < 16_000
    assert not asked.tools
    assert "sonnet" not in asked.system
    body.decode()


def test_the_scripted_model_server_knows_a_routing_call_and_its_choices() -> None:
    assert heard.ROUTER_MARK == ROUTER_MARK
    body = encode_request(routing_request("Say hi\n<prompt>", ("haiku", "opus"), ROUTER, "t1r"))
    asked = heard.listen("anthropic", body, "digest")
    assert asked.families == ("haiku", "opus")
    assert asked.asked == "Say hi\n<prompt>"
