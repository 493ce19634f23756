"""The operator's operations, as `aws lambda invoke` sends them."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from nodus_core.conversations.availability import check_available
from nodus_core.conversations.shelf import Shelf
from nodus_core.journal.journal import Journal
from nodus_core.kernel.errors import Refusal
from nodus_core.kernel.ids import digest
from nodus_core.kernel.objects import ObjectKey
from nodus_core.kernel.text import Inline
from nodus_core.resources.agent import AgentSpec
from nodus_core.resources.agentrun import AgentRunSpec
from nodus_core.resources.manifest import check_spec
from nodus_core.testing.clock import CountingIds, FakeClock
from nodus_core.testing.memory_payloads import MemoryPayloads
from nodus_core.testing.memory_store import MemoryStore

from functions.admin.operations import Operations

TEMPLATE = ObjectKey("nodus", "nodus", "Agent", "claude-assistant")


class Admin:
    def __init__(self) -> None:
        self.store, self.clock = MemoryStore(), FakeClock()
        self.journal = Journal(self.store, CountingIds())
        shelf = Shelf(self.journal, MemoryPayloads(), self.clock)
        self.operations = Operations.over(shelf, CountingIds())

    def __call__(self, operation: str, **fields: Any) -> dict[str, Any]:
        return self.operations.perform({"operation": operation, **fields})


@pytest.fixture
def admin() -> Admin:
    return Admin()


KEY = {"organization": "acme", "projects": ["*"], "permissions": ["*"], "name": "local"}


def test_what_is_made_may_be_made_again_and_a_key_is_told_by_its_name(admin: Admin) -> None:
    for wanted in ({"created": True}, {"created": False}):
        assert admin("CreateOrganization", organization="acme") == wanted
        assert admin("CreateProject", organization="acme", project="web") == wanted
    one, other = admin("CreateKey", **KEY)["token"], admin("CreateKey", **{**KEY, "name": "other"})["token"]
    assert one != other
    with pytest.raises(Refusal) as taken:
        admin("CreateKey", **KEY)
    assert taken.value.reason == "AlreadyExists"


def test_a_token_is_recognisable_and_never_stored(admin: Admin) -> None:
    admin("CreateOrganization", organization="acme")
    token = admin("CreateKey", **KEY)["token"]
    assert re.fullmatch(r"nodus_[A-Za-z0-9_-]{43}", token)
    assert token not in repr(admin.store.rows())
    (key,) = [key for key in admin.store.rows() if key.pk.startswith("key#")]
    assert key.pk == f"key#{digest(token)}"


@pytest.mark.req("NOD-030")
def test_templates_are_published_and_brought_up_to_date(admin: Admin) -> None:
    assert admin("PublishTemplates") == {"published": ["claude-assistant"]}
    stored = len(admin.store.commits)
    assert admin("PublishTemplates") == {"published": []}
    assert len(admin.store.commits) == stored
    template = admin.journal.object(TEMPLATE)
    assert template is not None
    older = replace(template, spec=Inline("{}"), version=template.version + 1)
    admin.journal.objects.replace(template, older, admin.clock.now())
    assert admin("PublishTemplates") == {"published": ["claude-assistant"]}
    renewed = admin.journal.object(TEMPLATE)
    assert renewed is not None
    assert (renewed.spec, renewed.generation) == (template.spec, 2)


@pytest.mark.req("NOD-030")
@pytest.mark.parametrize("name", ["claude-assistant"])
def test_a_published_template_is_an_agent_that_runs_can_use(admin: Admin, name: str) -> None:
    admin("PublishTemplates")
    stored = admin.journal.object(replace(TEMPLATE, name=name))
    assert stored is not None
    assert isinstance(stored.spec, Inline)
    agent = check_spec("Agent", name, json.loads(stored.spec.text))
    assert isinstance(agent, AgentSpec)
    assert agent.system
    run = AgentRunSpec.model_validate({"agent": name, "input": "x"})
    check_available("r", run, name, agent)  # raises what it would refuse
    grouped = run.model_copy(update={"group": "g"})
    with pytest.raises(Refusal):  # so that its silence means something
        check_available("r", grouped, name, agent)


@pytest.mark.parametrize(
    ("operation", "field", "most"),
    [
        ("CreateOrganization", "organization", 63),
        ("CreateProject", "project", 63),
        ("CreateKey", "name", 253),
    ],
)
def test_a_name_is_taken_at_its_limit_and_refused_beyond(
    admin: Admin, operation: str, field: str, most: int
) -> None:
    admin("CreateOrganization", organization="acme")
    others = KEY if operation == "CreateKey" else {"organization": "acme"}
    stored = len(admin.store.commits)
    with pytest.raises(Refusal) as refused:
        admin(operation, **{**others, field: "n" * (most + 1)})
    assert refused.value.reason == "Invalid"
    assert field in refused.value.message
    assert len(admin.store.commits) == stored
    admin(operation, **{**others, field: "n" * most})
    assert len(admin.store.commits) == stored + 1


@pytest.mark.parametrize(
    ("event", "reason", "words"),
    [
        ({}, "BadRequest", "operation must be one of"),
        ({"operation": "Drop"}, "BadRequest", "operation must be one of"),
        ({"operation": "CreateOrganization"}, "BadRequest", "organization"),
        ({"operation": "CreateOrganization", "organization": 5}, "BadRequest", "organization"),
        ({"operation": "CreateOrganization", "organization": "a", "project": "b"}, "BadRequest", "project"),
        ({"operation": "CreateOrganization", "organization": "A#b"}, "Invalid", "organization"),
        (
            {"operation": "CreateProject", "organization": "acme", "project": "a.b"},
            "Invalid",
            "project",
        ),
        ({"operation": "CreateProject", "organization": "acme", "project": "nodus"}, "Invalid", "templates"),
        ({"operation": "CreateProject", "organization": "none", "project": "a"}, "NotFound", "'none'"),
        ({"operation": "CreateKey", **KEY, "organization": "none"}, "NotFound", "'none'"),
        ({"operation": "CreateKey", **KEY, "permissions": []}, "Invalid", "permissions"),
        ({"operation": "CreateKey", **KEY, "permissions": ["agents:delete"]}, "Invalid", "permissions"),
        ({"operation": "CreateKey", **KEY, "projects": []}, "Invalid", "projects"),
        ({"operation": "CreateKey", **KEY, "projects": ["a b"]}, "Invalid", "projects"),
        ({"operation": "CreateKey", **KEY, "name": ""}, "Invalid", "name"),
        ({"operation": "CreateKey", **KEY, "name": "a\nb"}, "Invalid", "name"),
    ],
)
def test_what_is_refused_stores_nothing(admin: Admin, event: dict[str, Any], reason: str, words: str) -> None:
    admin("CreateOrganization", organization="acme")
    stored = len(admin.store.commits)
    with pytest.raises(Refusal) as refused:
        admin.operations.perform(event)
    assert refused.value.reason == reason
    assert words in refused.value.message
    assert len(admin.store.commits) == stored


@pytest.mark.req("NODQ-99", "NOD-104")
def test_credits_are_unlimited_until_they_are_set(admin: Admin) -> None:
    admin("CreateOrganization", organization="acme")
    assert admin("GetCredits", organization="acme") == {"unlimited": True}
    added = admin("AddCredits", organization="acme", amountUSD="25.00", requestKey="order-1")
    assert added == {"remainingUSD": "25", "spentUSD": "0", "reservedUSD": "0"}
    again = admin("AddCredits", organization="acme", amountUSD="25.00", requestKey="order-1")
    assert again == added == admin("GetCredits", organization="acme")
    assert admin("SetCredits", organization="acme", remainingUSD="0", requestKey="end")["remainingUSD"] == "0"


@pytest.mark.req("FLD-16")
def test_a_request_key_of_credits_counts_once_whatever_has_changed_since(admin: Admin) -> None:
    admin("CreateOrganization", organization="acme")
    unlimited = {"organization": "acme", "remainingUSD": "unlimited", "requestKey": "free"}
    assert admin("SetCredits", **unlimited) == {"unlimited": True}
    admin("SetCredits", organization="acme", remainingUSD="5", requestKey="five")
    assert admin("SetCredits", **unlimited)["remainingUSD"] == "5"
    assert admin("SetCredits", **{**unlimited, "requestKey": "free again"}) == {"unlimited": True}
    again = admin("SetCredits", organization="acme", remainingUSD="5.00", requestKey="five")
    assert again == {"unlimited": True}
    for operation, fields in (
        ("AddCredits", {"amountUSD": "5"}),
        ("SetCredits", {"remainingUSD": "6"}),
        ("SetCredits", {"remainingUSD": "unlimited"}),
    ):
        with pytest.raises(Refusal) as refused:
            admin(operation, organization="acme", requestKey="five", **fields)
        assert refused.value.reason == "IdempotencyKeyConflict"
    assert admin("GetCredits", organization="acme") == {"unlimited": True}
    with pytest.raises(Refusal) as nobody:
        admin("SetCredits", **{**unlimited, "organization": "nobody"})
    assert nobody.value.reason == "NotFound"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"organization": "acme", "amountUSD": "-1", "requestKey": "k"}, "Invalid"),
        ({"organization": "acme", "amountUSD": "1e3", "requestKey": "k"}, "Invalid"),
        ({"organization": "acme", "amountUSD": "0.0000001", "requestKey": "k"}, "Invalid"),
        ({"organization": "acme", "amountUSD": "1", "requestKey": ""}, "Invalid"),
        ({"organization": "nobody", "amountUSD": "1", "requestKey": "k"}, "NotFound"),
        ({"organization": "acme", "amountUSD": 1, "requestKey": "k"}, "BadRequest"),
        ({"organization": "acme", "amountUSD": "1"}, "BadRequest"),
    ],
)
def test_credits_that_are_not_right_are_refused(admin: Admin, fields: dict[str, Any], reason: str) -> None:
    admin("CreateOrganization", organization="acme")
    before = len(admin.store.commits)
    with pytest.raises(Refusal) as refused:
        admin("AddCredits", **fields)
    assert refused.value.reason == reason
    assert len(admin.store.commits) == before


ALICE = "arn:aws:iam::123456789012:role/dev"


@pytest.mark.req("NODQ-98")
def test_identities_are_mapped_changed_and_forgotten(admin: Admin) -> None:
    admin("CreateOrganization", organization="acme")
    session = "arn:aws:sts::123456789012:assumed-role/dev/alice"
    said = {"organization": "acme", "projects": ["web"], "permissions": ["viewer"]}
    assert admin("MapIdentity", arn="arn:aws:iam::123456789012:role/team/dev", **said) == {"arn": ALICE}
    assert admin("MapIdentity", arn=session, **{**said, "permissions": ["editor"]}) == {"arn": ALICE}
    assert admin("GetIdentity", arn=session) == {"mappings": [{**said, "permissions": ["editor"]}]}
    assert admin("UnmapIdentity", organization="acme", arn=session) == {"removed": True}
    assert admin("UnmapIdentity", organization="acme", arn=session) == {"removed": False}
    assert admin("GetIdentity", arn=ALICE) == {"mappings": []}


@pytest.mark.parametrize(
    ("wrong", "reason", "words"),
    [
        ({"arn": "alice"}, "Invalid", "arn"),
        ({"arn": "arn:aws:iam::123456789012:role/*"}, "Invalid", "arn"),
        ({"arn": "arn:aws:iam::*:role/dev"}, "Invalid", "arn"),
        ({"arn": ALICE + "\n"}, "Invalid", "arn"),
        ({"arn": "arn:aws:iam::123456789012:role/" + "a/" * 400 + "dev"}, "Invalid", "arn"),
        ({"organization": "nobody"}, "NotFound", "'nobody'"),
        ({"projects": []}, "Invalid", "projects"),
        ({"permissions": ["agents:delete"]}, "Invalid", "permissions"),
    ],
)
def test_what_cannot_be_mapped_is_refused(
    admin: Admin, wrong: dict[str, Any], reason: str, words: str
) -> None:
    admin("CreateOrganization", organization="acme")
    stored = len(admin.store.commits)
    good = {"organization": "acme", "arn": ALICE, "projects": ["*"], "permissions": ["*"]}
    with pytest.raises(Refusal) as refused:
        admin("MapIdentity", **{**good, **wrong})
    assert refused.value.reason == reason
    assert words in refused.value.message
    assert len(admin.store.commits) == stored
