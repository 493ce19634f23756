"""The link function as API Gateway calls it: what a stranger or a broken daemon sends is refused, never a fault."""

import base64
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
from nodus_core.kernel.warm import WarmMachine
from nodus_core.sandboxes.link import Link
from nodus_core.sandboxes.relay import Relay
from nodus_core.testing.clock import CountingIds, FakeClock
from nodus_core.testing.memory_payloads import MemoryPayloads
from nodus_core.testing.memory_store import MemoryStore
from nodus_core.testing.memory_vault import MemoryVault

from functions.link import bell, words
from functions.link.handler import CODES

TOKEN = "token"


class NoWires:
    def post(self, connection: str, text: str) -> bool:
        return False


def link() -> Link:
    store, clock = MemoryStore(), FakeClock()
    now = clock.now()
    key = ObjectKey("acme", "web", "AgentRun", "run")
    head = Conversation("conv", key, Inline("{}"), Line(1), now, Decimal(1))
    sandbox = Sandbox("s", "conv", SandboxState.REQUESTED, digest("code"), now, "image")
    rows = (
        Put(stored(conversation_key("conv"), head)),
        Put(stored(sandbox_key("s"), sandbox)),
    )
    store.commit(Transaction("prepare", rows), "prepare")
    return Link(Journal(store, CountingIds()), MemoryPayloads(), clock, MemoryVault())


def call(verb: str, body: dict[str, Any], token: str = TOKEN, sandbox: str = "s") -> dict[str, Any]:
    return {
        "rawPath": f"/link/v1/sandboxes/{sandbox}/{verb}",
        "headers": {"authorization": f"Bearer {token}"},
        "body": json.dumps(body),
        "requestContext": {},
    }


def hello(token: str = TOKEN, code: str = "code") -> dict[str, Any]:
    said = {"boot": "b", "tokenHash": digest(TOKEN), "enrolCode": code, "isolation": {"guard": "network"}}
    return call("hello", said, token)


def refusal(there: Link, event: dict[str, Any]) -> int:
    with pytest.raises(Refusal) as refused:
        words.hear(there, event)
    return CODES[refused.value.reason]


def test_a_daemon_that_says_hello_holds_the_token_whose_hash_it_binds() -> None:
    there = link()
    for token in ("", "another"):
        assert refusal(there, hello(token)) == 401
    assert json.loads(words.hear(there, hello())) == {"state": "running"}
    assert json.loads(words.hear(there, call("pull", {"boot": "b", "have": ["x"]})))["more"] is False


@pytest.mark.parametrize("body", ["abc", "é", base64.b64encode(b"\xff").decode()])
def test_a_body_that_is_no_base64_of_text_is_a_bad_request(body: str) -> None:
    assert refusal(link(), {**call("pull", {}), "body": body, "isBase64Encoded": True}) == 400


@pytest.mark.parametrize("sandbox", ["", "s" * 2000, "a#b", "\u0000"])
@pytest.mark.parametrize("verb", ["hello", "pull"])
def test_a_name_that_no_sandbox_has_is_unauthorized(sandbox: str, verb: str) -> None:
    assert refusal(link(), call(verb, {"boot": "b"}, sandbox=sandbox)) == 401
    event = {
        "requestContext": {"connectionId": "c", "eventType": "CONNECT"},
        "queryStringParameters": {"sandbox": sandbox},
    }
    there = link()
    with pytest.raises(Refusal) as refused:
        bell.hear(there, Relay(there.journal, NoWires(), there.clock), event)
    assert CODES[refused.value.reason] == 401


def whose(machine: str = "warm-1", verb: str = "whose", token: str = TOKEN, **said: Any) -> dict[str, Any]:
    """What a machine of the pool asks."""
    body = {"tokenHash": digest(token), "enrolCode": "pool", "enrolHash": digest("own"), **said}
    return {**call(verb, body, token), "rawPath": f"/link/v1/warm/{machine}/{verb}"}


def test_a_machine_of_the_pool_asks_whose_it_is_and_enrols_by_its_own_code() -> None:
    talking = link()
    talking.journal.warm.place(WarmMachine("warm-1", "kind", digest("pool"), talking.clock.now()))
    talking.journal.warm.note_task("warm-1", "task/warm-1")
    assert json.loads(words.hear(talking, whose())) == {"sandbox": None}
    (machine,) = talking.journal.warm_machines()
    talking.journal.warm.bind(machine, "s", digest("code"), talking.clock.now())
    assert json.loads(words.hear(talking, whose())) == {"sandbox": "s"}
    with pytest.raises(Refusal) as refused:  # what the worker had issued counts no more
        words.hear(talking, hello())
    assert refused.value.reason == "Unauthorized"
    assert json.loads(words.hear(talking, hello(code="own")))["state"] == "running"


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (whose("warm-9"), "Gone"),
        (whose(enrolCode="guessed"), "Unauthorized"),
        (whose(tokenHash=digest("another")), "Unauthorized"),
        (whose(enrolHash="short"), "BadRequest"),
        (whose(enrolCode=""), "BadRequest"),
        (whose("warm 1"), "Unauthorized"),
        (whose(verb="hello"), "NotFound"),
    ],
)
def test_what_strangers_ask_of_the_pool_is_refused(asked: dict[str, Any], reason: str) -> None:
    talking = link()
    talking.journal.warm.place(WarmMachine("warm-1", "kind", digest("pool"), talking.clock.now()))
    with pytest.raises(Refusal) as refused:
        words.hear(talking, asked)
    assert refused.value.reason == reason
    (machine,) = talking.journal.warm_machines()
    assert machine.token_hash is None
