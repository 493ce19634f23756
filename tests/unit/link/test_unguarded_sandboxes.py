"""A sandbox that nothing keeps to its egress policy runs no command: the link refuses its daemon's first hello."""

import json
from decimal import Decimal
from typing import Any

import pytest
from nodus_core.journal.journal import Journal
from nodus_core.journal.keys import conversation_key, sandbox_key
from nodus_core.journal.store import Put, Transaction
from nodus_core.journal.writer import stored
from nodus_core.kernel.errors import Refusal
from nodus_core.kernel.ids import digest
from nodus_core.kernel.objects import Conversation, Line, ObjectKey
from nodus_core.kernel.sandboxes import Sandbox
from nodus_core.kernel.states import SandboxState
from nodus_core.kernel.text import Inline
from nodus_core.sandboxes.link import Link
from nodus_core.testing.clock import CountingIds, FakeClock
from nodus_core.testing.memory_payloads import MemoryPayloads
from nodus_core.testing.memory_store import MemoryStore
from nodus_core.testing.memory_vault import MemoryVault

from functions.link import words
from functions.link.handler import CODES

ON_FARGATE = {"isolated": True, "guard": None, "missing": []}
OPTED_IN = {"isolated": False, "guard": None, "missing": [], "optIn": True}


def made(egress: str) -> tuple[Link, Journal]:
    """A link and the journal of one requested sandbox `s` with this egress policy."""
    store, clock = MemoryStore(), FakeClock()
    now = clock.now()
    key = ObjectKey("acme", "web", "AgentRun", "run")
    head = Conversation("conv", key, Inline("{}"), Line(1), now, Decimal(1))
    sandbox = Sandbox("s", "conv", SandboxState.REQUESTED, digest("code"), now, "image", egress)
    rows = (Put(stored(conversation_key("conv"), head)), Put(stored(sandbox_key("s"), sandbox)))
    store.commit(Transaction("prepare", rows), "prepare")
    journal = Journal(store, CountingIds())
    return Link(journal, MemoryPayloads(), clock, MemoryVault()), journal


def hello(link: Link, isolation: dict[str, Any], code: str = "code") -> int:
    """The HTTP status that a daemon hears."""
    said = {"boot": "b", "tokenHash": digest("token"), "enrolCode": code, "isolation": isolation}
    event = {
        "rawPath": "/link/v1/sandboxes/s/hello",
        "headers": {"authorization": "Bearer token"},
        "body": json.dumps(said),
        "requestContext": {},
    }
    try:
        words.hear(link, event)
    except Refusal as refusal:
        return CODES[refusal.reason]
    return 200


def sandbox_of(journal: Journal) -> Sandbox:
    found = journal.sandbox("s")
    assert found is not None
    return found


@pytest.mark.parametrize("egress", ["Deny", "AllowList", "Open"])
@pytest.mark.parametrize("isolation", [ON_FARGATE, {}])
def test_a_policy_that_nothing_enforces_ends_the_sandbox_with_reason_and_remedy(
    egress: str, isolation: dict[str, Any]
) -> None:
    link, journal = made(egress)

    assert hello(link, isolation) == 410
    found = sandbox_of(journal)
    assert (found.state, found.token_hash) == (SandboxState.GONE, None)
    assert f"nothing in this sandbox enforces the egress policy {egress}" in (found.reason or "")
    assert "docs/operations.md" in (found.reason or "")


def test_a_stranger_without_the_code_ends_nobodys_sandbox() -> None:
    link, journal = made("Deny")

    assert hello(link, ON_FARGATE, code="guessed") == 401
    assert sandbox_of(journal).state is SandboxState.REQUESTED


@pytest.mark.parametrize(
    ("egress", "isolation"),
    [
        ("Open", {"isolated": True, "guard": "network"}),
        ("Deny", OPTED_IN),
        ("Deny", {"isolated": True, "guard": "network"}),
        ("Deny", {"isolated": True, "guard": "seccomp"}),
    ],
    ids=["open", "opted-in", "network", "seccomp"],
)
def test_what_is_guarded_or_wanted_so_comes_up(egress: str, isolation: dict[str, Any]) -> None:
    link, journal = made(egress)

    assert hello(link, isolation) == 200
    assert sandbox_of(journal).state is SandboxState.RUNNING


def test_a_later_hello_cannot_say_that_there_is_a_guard() -> None:
    link, journal = made("Deny")

    assert hello(link, OPTED_IN) == 200
    assert hello(link, {"isolated": True, "guard": "network"}) == 200
    found = sandbox_of(journal)
    assert (found.isolated, found.guard) == (False, None)
