"""The operator's catalogue: which targets it gives, and how it says what is wrong with it."""

from decimal import Decimal

import pytest
from nodus_core.inference import ModelNotOffered
from nodus_core.inference.catalogue import BadCatalogue, load_catalogue, packaged_catalogue
from nodus_core.resources.families import FAMILIES

SMALL = """
endpoints:
  here: {wire: anthropic}
  there: {wire: openai}
router: sonnet
families:
  sonnet: {endpoint: here, model: s-1, maxOutput: 10}
  fable: {endpoint: here, model: f-1}
models:
  a/one: {endpoint: there, aliases: [uno], name: The One, prices: {input: "0.10"}}
  a/mute: {endpoint: there, tools: false}
"""


@pytest.mark.req("NODQ-91")
def test_the_packaged_catalogue_serves_every_family_with_known_prices() -> None:
    catalogue = packaged_catalogue()
    assert catalogue.families() == FAMILIES
    for family in FAMILIES:
        target = catalogue.resolve("Nodus", family=family)
        assert target.wire == "anthropic"
        assert target.family == family
        assert target.model.startswith(f"claude-{family}-")
        assert isinstance(target.prices.input, Decimal)
        assert isinstance(target.prices.output, Decimal)
    assert catalogue.router().prices.input is not None


@pytest.mark.req("NOD-096")
@pytest.mark.parametrize("name", ["openai/gpt-oss-20b", "gpt-oss-20b"])
def test_an_on_demand_model_is_found_by_id_and_alias(name: str) -> None:
    target = packaged_catalogue().resolve("OnDemand", name=name)
    assert target.wire == "openai"
    assert target.shown_name == "openai/gpt-oss-20b"


def test_scripted_endpoints_mark_the_names_of_their_models() -> None:
    catalogue = packaged_catalogue(scripted={"anthropic"})
    assert catalogue.managed("sonnet").shown_name == "scripted/claude-sonnet-5-5"
    assert catalogue.on_demand("gpt-oss-20b").shown_name == "openai/gpt-oss-20b"


@pytest.mark.req("NOD-100")
def test_a_model_without_tool_calling_is_neither_offered_nor_served() -> None:
    catalogue = load_catalogue(SMALL, "small.yaml")
    assert [offer.id for offer in catalogue.offers()] == ["a/one"]
    with pytest.raises(ModelNotOffered, match="tool calling") as refused:
        catalogue.on_demand("a/mute")
    assert refused.value.field == "spec.model.name"


@pytest.mark.parametrize("text", ["one", "A/O", "UNO", "the o"])
def test_models_are_found_by_part_of_name_id_or_alias(text: str) -> None:
    (offer,) = load_catalogue(SMALL, "small.yaml").offers()
    assert offer.matches(text)
    assert not offer.matches("zwei")
    assert offer.prices.input == Decimal("0.10")
    assert offer.prices.output is None


@pytest.mark.req("NOD-097")
def test_unknown_models_and_endpoints_are_refused_with_what_there_is() -> None:
    catalogue = load_catalogue(SMALL, "small.yaml")
    with pytest.raises(ModelNotOffered, match="it offers: a/one"):
        catalogue.resolve("OnDemand", name="nothing")
    with pytest.raises(ModelNotOffered, match="no endpoint 'my-ep'"):
        catalogue.resolve("OnDemand", name="endpoint/my-ep")
    with pytest.raises(ModelNotOffered, match="not 'Hosted'"):
        catalogue.resolve("Hosted")


@pytest.mark.req("NODQ-91", "NOD-012")
def test_a_family_that_is_not_configured_is_left_out_of_the_choice() -> None:
    catalogue = load_catalogue(SMALL, "small.yaml")
    assert catalogue.families() == ("sonnet", "fable")
    assert catalogue.families(["fable", "haiku"]) == ("fable",)
    with pytest.raises(ModelNotOffered, match="haiku"):
        catalogue.families(["haiku"])
    with pytest.raises(ModelNotOffered):
        catalogue.managed("haiku")


def test_an_installation_without_managed_models_says_so() -> None:
    catalogue = load_catalogue("endpoints: {}", "none.yaml")
    with pytest.raises(ModelNotOffered):
        catalogue.router()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: [", "is not YAML"),
        ("", "(file)"),
        ("endpoints: {a: {wire: soap}}", "endpoints.a.wire"),
        ("endpoints: {}\nmodels: {m: {endpoint: b}}", "endpoint 'b' is not among"),
        (SMALL.replace("router: sonnet", "router: haiku"), "router: 'haiku'"),
        (SMALL.replace("router: sonnet", ""), "router: None"),
        (SMALL.replace("[uno]", "[a/mute]"), "already means"),
        (SMALL.replace('"0.10"', "0.10"), "write the price in quotes"),
        (SMALL.replace('"0.10"', '"-1"'), "models.a/one.prices.input"),
        (SMALL.replace('"0.10"', '"NaN"'), "models.a/one.prices.input"),
        (SMALL.replace("maxOutput", "maxoutput"), "families.sonnet.maxoutput"),
        (SMALL.replace("fable:", "mythos:"), "families.mythos"),
    ],
)
def test_a_broken_catalogue_names_file_and_field(text: str, says: str) -> None:
    with pytest.raises(BadCatalogue) as refused:
        load_catalogue(text, "mine.yaml")
    assert "mine.yaml" in str(refused.value)
    assert says in str(refused.value)
