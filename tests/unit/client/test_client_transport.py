"""Calls: retries only where they are safe, one key per logical call, the key never given away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import nodus
import pytest
from nodus import errors
from nodus._transport import TRIES, Call, Reply, Transport
from nodus._wire import BlockingWire

from tests.unit.client.fake_runs import Outcome, Run
from tests.unit.client.fake_server import FakeServer, Fault

AGENT: dict[str, Any] = {"metadata": {"name": "a"}, "spec": {}}


class Pauses:
    """Sleeps that cost no time; the clock runs on by them."""

    def __init__(self) -> None:
        self.all: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.all.append(seconds)

    def clock(self) -> float:
        return sum(self.all)


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


@pytest.fixture
def paused(client: nodus.Client, pauses: Pauses) -> nodus.Client:
    """A client whose pauses take no time."""
    client.__dict__["wire"] = BlockingWire(sleep=pauses.sleep, clock=pauses.clock, chance=lambda: 0.5)
    return client


Act = Callable[[nodus.Client], Any]


def create(client: nodus.Client) -> Any:
    return client.agents.create("a", {})


def read(client: nodus.Client) -> Any:
    return list(client.agents.list())


def apply(client: nodus.Client) -> Any:
    return client.agents.apply(AGENT)


def patch(client: nodus.Client) -> Any:
    client.agents.apply(AGENT)
    return client.agents.patch("a", {"spec": {"system": "x"}})


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("act", [create, read, apply])
def test_a_server_that_says_when_is_asked_again_then(
    paused: nodus.Client, server: FakeServer, pauses: Pauses, act: Act, status: int
) -> None:
    server.faults.append(Fault(".", times=2, status=status, headers={"Retry-After": "7"}))
    act(paused)
    assert len(pauses.all) == 2
    assert min(pauses.all) >= 7


def test_a_date_in_retry_after_is_obeyed(paused: nodus.Client, server: FakeServer, pauses: Pauses) -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=20), usegmt=True)
    server.faults.append(Fault(".", status=503, headers={"Retry-After": later}))
    read(paused)
    assert 15 < pauses.all[0] < 25


def test_a_long_retry_after_is_left_to_the_caller(
    paused: nodus.Client, server: FakeServer, pauses: Pauses
) -> None:
    server.faults.append(Fault(".", status=429, reason="TooManyRequests", headers={"Retry-After": "3600"}))
    with pytest.raises(errors.TooManyRequestsError) as caught:
        read(paused)
    assert (caught.value.retry_after, pauses.all) == (3600, [])


def test_tries_are_bounded_and_their_pauses_grow(
    paused: nodus.Client, server: FakeServer, pauses: Pauses
) -> None:
    server.faults.append(Fault("GET", times=100, status=503, reason="ServiceUnavailable"))
    with pytest.raises(errors.ServiceUnavailableError):
        read(paused)
    assert len(server.seen) == TRIES
    assert pauses.all == sorted(pauses.all)
    assert len(set(pauses.all)) == TRIES - 1


@pytest.mark.req("FLD-16")
def test_a_create_whose_answers_are_lost_makes_one_object(paused: nodus.Client, server: FakeServer) -> None:
    server.faults += [Fault("POST", lost=True), Fault("POST", status=502)]
    assert create(paused).metadata.name == "a"
    assert len({seen.headers["idempotency-key"] for seen in server.asked("POST")}) == 1
    assert (len(server.asked("POST")), len(server.objects)) == (3, 1)


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_a_failed_change_is_not_repeated(paused: nodus.Client, server: FakeServer, status: int) -> None:
    apply(paused)
    server.faults.append(Fault("PATCH", status=status))
    with pytest.raises(errors.ApiError):
        paused.agents.patch("a", {"spec": {"system": "x"}})
    server.faults.append(Fault("DELETE", status=status))
    with pytest.raises(errors.ApiError):
        paused.agents.delete("a")
    assert (len(server.asked("PATCH")), len(server.asked("DELETE"))) == (2, 1)


def test_a_merge_patch_whose_answer_is_lost_is_not_repeated(paused: nodus.Client, server: FakeServer) -> None:
    apply(paused)
    server.faults.append(Fault("PATCH", lost=True))
    with pytest.raises(errors.OutcomeUnknownError, match="look at the object"):
        paused.agents.patch("a", {"spec": {"system": "x"}})
    assert len(server.asked("PATCH")) == 2


@pytest.mark.parametrize("act", [read, apply, create])
def test_what_may_be_repeated_survives_a_lost_answer(
    paused: nodus.Client, server: FakeServer, act: Act
) -> None:
    server.faults.append(Fault(".", times=2, lost=True))
    act(paused)
    assert len(server.seen) == 3


@pytest.mark.req("FLD-16")
def test_an_apply_of_a_run_whose_answer_is_lost_is_not_repeated(
    paused: nodus.Client, server: FakeServer
) -> None:
    """Somebody may have deleted the run in between: it would be made, and paid for, a second time."""
    apply(paused)
    server.faults.append(Fault("PATCH", lost=True))
    with pytest.raises(errors.OutcomeUnknownError, match=r"agentruns/r .*look at the object"):
        paused.agentruns.apply({"metadata": {"name": "r"}, "spec": {"agent": "a", "input": "x"}})
    assert len(server.asked("PATCH .*/agentruns/")) == 1


@pytest.mark.req("FLD-16")
@pytest.mark.parametrize("fault", [Fault("POST", times=99, lost=True), Fault("POST", times=99, status=502)])
def test_a_submit_without_an_answer_names_its_run(
    paused: nodus.Client, server: FakeServer, fault: Fault
) -> None:
    server.faults.append(replace(fault))
    with pytest.raises(errors.OutcomeUnknownError) as caught:
        nodus.ClaudeAgent("a", client=paused).submit("x")
    run = caught.value.run
    assert run is not None
    assert run.name in str(caught.value)
    stored = ("default", "agentruns", run.name) in server.objects
    assert stored == fault.lost


@pytest.mark.req("FLD-16")
def test_every_try_of_a_call_carries_its_key_and_each_call_its_own(
    paused: nodus.Client, server: FakeServer
) -> None:
    server.faults.append(Fault("PATCH", times=2, lost=True))
    patch(paused)
    keys = [seen.headers["idempotency-key"] for seen in server.seen]
    assert len(keys) == 4
    assert keys[0] == keys[1] == keys[2] != keys[3]


def test_a_server_that_is_not_there_is_named(
    paused: nodus.Client, server: FakeServer, pauses: Pauses
) -> None:
    address = server.address
    server.stop()
    with pytest.raises(errors.ServerUnreachableError, match=address):
        create(paused)
    assert len(pauses.all) == TRIES - 1


def test_no_pause_goes_over_the_time_that_is_left(
    paused: nodus.Client, server: FakeServer, pauses: Pauses
) -> None:
    server.faults.append(Fault(".", times=9, status=503, headers={"Retry-After": "7"}))
    with pytest.raises(errors.ServiceUnavailableError):
        paused.agents.get("a", within=10)
    assert len(pauses.all) == 1


@pytest.mark.parametrize(
    "body", [b"<html>Bad Gateway</html>", b'{"message":"Service Unavailable"}', b"[]", b""]
)
def test_a_gateway_s_own_refusal_is_understood(paused: nodus.Client, server: FakeServer, body: bytes) -> None:
    server.faults.append(Fault("POST", times=9, status=503, body=body))
    with pytest.raises(errors.ServiceUnavailableError) as caught:
        create(paused)
    assert caught.value.reason == "ServiceUnavailable"


def test_an_answer_that_is_no_json_says_so(paused: nodus.Client, server: FakeServer) -> None:
    server.faults.append(Fault("GET", status=200, body=b"<html>Welcome</html>"))
    with pytest.raises(errors.NodusError, match="address"):
        read(paused)


def test_half_a_character_is_refused_before_it_is_sent(paused: nodus.Client, server: FakeServer) -> None:
    with pytest.raises(errors.NodusError, match="ud83d"):
        paused.agents.create("a", {"system": "\ud83d"})
    assert server.seen == []


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_a_name_that_would_be_another_path_is_refused(
    paused: nodus.Client, server: FakeServer, name: str
) -> None:
    with pytest.raises(errors.NodusError, match="name"):
        paused.agents.get(name)
    assert server.seen == []


def test_names_are_quoted(paused: nodus.Client, server: FakeServer) -> None:
    with pytest.raises(errors.NotFoundError):
        paused.agents.get("a/b?c#d")
    assert server.seen[0].path.endswith("/agents/a%2Fb%3Fc%23d")


def test_the_organization_travels_in_its_header(server: FakeServer) -> None:
    with nodus.Client(org="default") as client:
        list(client.agents.list())
    assert server.seen[0].headers["nodus-org"] == "default"
    with nodus.Client() as client:
        list(client.agents.list())
    assert "nodus-org" not in server.seen[1].headers


@pytest.mark.req("NOD-066", "NOD-067")
def test_a_large_answer_is_fetched_without_the_key(paused: nodus.Client, server: FakeServer) -> None:
    long = "ä" * (3 * 1024 * 1024)
    server.outcomes["x"] = Outcome(answer=long)
    nodus.ClaudeAgent("a", client=paused).submit("x", name="r")
    server.runs["default", "r"].end()
    assert paused.agentruns.answer("r") == long
    assert server.asked("GET /stored/")[0].headers.keys() & {"authorization", "nodus-org"} == set()


def test_the_object_store_is_asked_again_and_its_signature_is_never_shown(
    paused: nodus.Client, server: FakeServer
) -> None:
    server.faults.append(
        Fault("GET /apis", times=2, status=307, headers={"Location": "/stored/default/r?sig=secret"})
    )
    server.faults += [Fault("GET /stored", status=503), Fault("GET /stored", times=9, lost=True)]
    server.runs["default", "r"] = Run(Outcome())
    with pytest.raises(errors.OutcomeUnknownError, match="/stored/default/r ") as caught:
        paused.agentruns.answer("r")
    assert "secret" not in str(caught.value)
    assert len(server.asked("GET /stored")) == TRIES


def test_a_server_under_tls_does_not_lead_out_of_it(paused: nodus.Client) -> None:
    transport = Transport(replace(paused.settings, server="https://nodus.example"), paused.wire)
    with pytest.raises(errors.NodusError, match="nowhere"):
        next(transport.fetch(Reply(307, {"location": "http://nodus.example/x"}, b"")))


@pytest.mark.parametrize("location", ["file:///etc/passwd", "ftp://127.0.0.1/x"])
def test_a_redirect_elsewhere_is_not_followed(
    paused: nodus.Client, server: FakeServer, location: str
) -> None:
    server.faults.append(Fault("GET", status=307, headers={"Location": location}))
    with pytest.raises(errors.NodusError, match="nowhere"):
        paused.agentruns.answer("r")


def test_other_calls_follow_no_redirect(paused: nodus.Client, server: FakeServer) -> None:
    server.faults.append(Fault("GET", status=307, headers={"Location": "/stored/default/r"}, body=b""))
    with pytest.raises(errors.NodusError):
        paused.agents.get("a")
    assert len(server.seen) == 1


def test_an_expired_address_says_to_ask_again(paused: nodus.Client, server: FakeServer) -> None:
    server.faults.append(Fault("GET /apis", status=307, headers={"Location": "/stored/default/r"}))
    server.faults.append(Fault("GET /stored", status=403))
    with pytest.raises(errors.NodusError, match="ask again"):
        paused.agentruns.answer("r")


def test_a_run_is_made_once_though_the_answer_of_its_create_is_lost(
    paused: nodus.Client, server: FakeServer
) -> None:
    server.faults.append(Fault("POST", lost=True))
    run = nodus.ClaudeAgent("a", client=paused).submit("x")
    assert [key[2] for key in server.objects if key[1] == "agentruns"] == [run.name]
    assert len(server.asked("POST")) == 2


def test_a_run_with_a_given_name_is_not_made_twice(paused: nodus.Client, server: FakeServer) -> None:
    agent = nodus.ClaudeAgent("a", client=paused)
    agent.submit("x", name="mine")
    with pytest.raises(errors.AlreadyExistsError):
        agent.submit("y", name="mine")


def test_the_key_of_a_call_is_random() -> None:
    assert len({Call("POST", "/").key for _ in range(50)}) == 50


def test_settings_never_show_the_key(client: nodus.Client) -> None:
    assert client.settings.token not in repr(client.settings)
