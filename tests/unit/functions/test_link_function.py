"""The link as daemons call it, honest ones and hostile ones: each speaks for its own sandbox, once, and no more."""

from typing import Any

import pytest
from nodus_core.conversations.worker import Worker
from nodus_core.journal.ports import TaskRequest
from nodus_core.kernel.errors import StoreUnavailable
from nodus_core.kernel.ids import digest
from nodus_core.kernel.sandboxes import Command
from nodus_core.kernel.states import CommandState, SandboxState, Statement, TaskState
from nodus_core.testing.crash import Crash

from functions.link import handler as link
from tests.unit.functions.deployed import Deployed, http, websocket

TOKEN, OTHER = "a" * 64, "b" * 64
GUARDED = {"isolated": True, "guard": "network", "missing": []}
COMMAND = "conv-1.r1t0"


class Daemon:
    """What a daemon says; whoever calls decides under which token, boot and sandbox."""

    def __init__(self, deployed: Deployed, code: str, sandbox: str = "conv-s1", token: str = TOKEN) -> None:
        self.deployed, self.code, self.sandbox, self.token, self.boot = (
            deployed,
            code,
            sandbox,
            token,
            "boot-1",
        )

    def say(self, verb: str, **body: Any) -> dict[str, Any]:
        event = http(
            f"/link/v1/sandboxes/{self.sandbox}/{verb}", {"boot": self.boot, **body}, token=self.token
        )
        return self.deployed.call(link, event)

    def hello(self, **more: Any) -> int:
        said = {"tokenHash": digest(self.token), "enrolCode": self.code, "version": "1", "isolation": GUARDED}
        return int(self.say("hello", **{**said, "limits": {"enforced": {"cpus": 0.5}}, **more})["statusCode"])

    def done(self, command: str = COMMAND, **result: Any) -> int:
        return int(
            self.say("done", id=command, result={"state": "exited", "exitCode": 0, **result})["statusCode"]
        )


@pytest.fixture
def daemon(deployed: Deployed) -> Daemon:
    """The daemon of a requested sandbox, before its first word; the worker that asked for it has died."""
    world = deployed.world
    codes: list[str] = []
    started = world.sandboxes.run

    def run(request: TaskRequest) -> str:
        codes.append(request.variables["NODUS_ENROL_CODE"])
        return started(request)

    world.sandboxes.run = run  # type: ignore[method-assign]
    world.sandboxes._turn = lambda daemon: None  # type: ignore[method-assign] - the test speaks for it
    Worker(world.ports).advance("conv", 1, lambda: 900.0)
    return Daemon(deployed, codes[0])


def works(daemon: Daemon) -> Command:
    """The daemon is up and has claimed its first command."""
    world = daemon.deployed.world
    assert daemon.hello() == 200
    world.kicks.kick("conv")
    while world.executions.waiting:
        Worker(world.ports).advance(*world.executions.waiting.pop(0), lambda: 900.0)
    pulled = daemon.say("pull")
    assert pulled["statusCode"] == 200
    assert COMMAND in pulled["body"]
    return command(daemon)


def command(daemon: Daemon) -> Command:
    found = daemon.deployed.world.outside.command("conv-s1", COMMAND)
    assert found is not None
    return found


def state(daemon: Daemon) -> SandboxState:
    sandbox = daemon.deployed.world.outside.sandbox("conv-s1")
    assert sandbox is not None
    return sandbox.state


def line_works(daemon: Daemon) -> None:
    """What was started works until it rests, and the sweeper finds what is due."""
    world = daemon.deployed.world
    world.clock.advance(31)
    world.kicks.kick("conv")
    while world.executions.waiting:
        Worker(world.ports).advance(*world.executions.waiting.pop(0), lambda: 900.0)


# --- enrolment ---


def test_an_honest_daemon_enrols_works_and_is_heard_again(daemon: Daemon) -> None:
    works(daemon)
    assert daemon.hello() == 200  # its first answer was lost
    assert daemon.done(output="a\n") == 200
    assert daemon.done(output="a\n") == 200
    assert command(daemon).state is CommandState.DONE
    assert '"commands":[]' in daemon.say("pull")["body"]


@pytest.mark.parametrize("code", [None, "", "wrong"])
def test_without_the_code_nobody_enrols(daemon: Daemon, code: str | None) -> None:
    assert daemon.hello(enrolCode=code) == 401
    assert state(daemon) is SandboxState.REQUESTED


def test_before_a_code_was_made_nobody_enrols(deployed: Deployed) -> None:
    """Between the sandbox's row and its code: an empty code is not the hash of nothing."""
    world = deployed.world

    def dies(*arguments: object) -> None:
        raise Crash("before the code is stored")

    world.journal.sandboxes.issue_code = dies  # type: ignore[method-assign]
    with pytest.raises(Crash):
        Worker(world.ports).advance("conv", 1, lambda: 900.0)
    for code in (None, "", "guess"):
        early = Daemon(deployed, "")
        assert early.hello(enrolCode=code) == 401
    assert state(early) is SandboxState.REQUESTED


def test_a_code_that_was_used_enrols_no_other_token(daemon: Daemon) -> None:
    assert daemon.hello() == 200
    thief = Daemon(daemon.deployed, daemon.code, token=OTHER)
    assert thief.hello() == 401
    assert thief.say("pull")["statusCode"] == 401
    assert daemon.say("pull")["statusCode"] == 200


def test_a_hash_that_is_not_the_tokens_binds_nothing(daemon: Daemon) -> None:
    assert daemon.hello(tokenHash=digest(OTHER)) == 401
    assert state(daemon) is SandboxState.REQUESTED


# --- a result that comes too late ---


@pytest.mark.req("NODQ-55", "NOD-085", "NOD-092")
def test_a_result_that_comes_once_a_person_is_asked_changes_nothing(daemon: Daemon) -> None:
    works(daemon)
    world = daemon.deployed.world
    world.outside.sandboxes.gone("conv-s1", "its host is gone", world.clock.now())
    line_works(daemon)
    assert world.is_parked()
    before = world.store.rows()  # type: ignore[attr-defined] - the in-memory double
    assert [daemon.done(output="paid\n"), daemon.say("pull")["statusCode"]] == [410, 410]
    assert world.store.rows() == before  # type: ignore[attr-defined]
    line_works(daemon)
    assert world.is_parked()
    assert world.resolve("r1t0", Statement.HAPPENED, "paid, says the bank")
    line_works(daemon)
    (settled,) = world.outside.tasks("conv-1", ["r1t0"]).values()
    assert settled.state is TaskState.COMPLETED
    assert settled.resolution is not None
    assert settled.result is not None
    assert "paid, says the bank" in repr(settled.result.text)


@pytest.mark.req("NOD-085")
def test_a_result_that_comes_before_its_command_is_given_up_counts(daemon: Daemon) -> None:
    works(daemon)
    assert daemon.done(output="paid\n") == 200
    world = daemon.deployed.world
    world.outside.sandboxes.gone("conv-s1", "its host is gone", world.clock.now())
    line_works(daemon)
    assert not world.is_parked()
    assert world.outside.tasks("conv-1", ["r1t0"])["r1t0"].state is TaskState.COMPLETED


# --- whose word counts ---


@pytest.mark.parametrize("verb", ["pull", "done"])
@pytest.mark.parametrize("sandbox", ["conv-s2", "other-s1", "nobody", ""])
def test_a_daemon_does_not_speak_for_another_sandbox(daemon: Daemon, sandbox: str, verb: str) -> None:
    works(daemon)
    stranger = Daemon(daemon.deployed, daemon.code, sandbox)
    assert stranger.say(verb, id=COMMAND, result={"state": "exited"})["statusCode"] == 401
    assert command(daemon).state is CommandState.CLAIMED


@pytest.mark.parametrize("token", ["", OTHER, digest(TOKEN), TOKEN[:-1]])
def test_a_wrong_token_is_refused(daemon: Daemon, token: str) -> None:
    works(daemon)
    stranger = Daemon(daemon.deployed, daemon.code, token=token)
    assert stranger.say("pull")["statusCode"] == 401
    assert stranger.done() == 401
    assert command(daemon).result is None


def test_no_token_at_all_is_refused(daemon: Daemon) -> None:
    works(daemon)
    answer = daemon.deployed.call(link, http("/link/v1/sandboxes/conv-s1/pull", {"boot": "boot-1"}))
    assert answer["statusCode"] == 401


def test_a_command_is_finished_by_the_boot_that_claimed_it(daemon: Daemon) -> None:
    works(daemon)
    daemon.boot = "boot-2"
    assert daemon.done() == 409
    assert command(daemon).state is CommandState.CLAIMED
    assert daemon.done("conv-1.r9t9") == 409


def test_a_later_boot_loses_what_the_earlier_one_had(daemon: Daemon) -> None:
    works(daemon)
    daemon.boot = "boot-2"
    assert daemon.hello() == 200
    assert command(daemon).state is CommandState.LOST
    assert '"commands":[]' in daemon.say("pull")["body"]  # it is never run again
    daemon.boot = "boot-1"
    assert daemon.done() == 409


def test_the_first_result_stays(daemon: Daemon) -> None:
    works(daemon)
    assert daemon.done(output="first") == 200
    first = command(daemon)
    assert daemon.done(output="second", exitCode=1) == 200
    assert command(daemon) == first


@pytest.mark.req("NOD-044")
def test_after_the_release_a_daemon_hears_that_it_is_over(daemon: Daemon) -> None:
    works(daemon)
    daemon.deployed.world.outside.sandboxes.release("conv-s1")
    assert '"stop":true' in daemon.say("pull")["body"]
    world = daemon.deployed.world
    world.outside.sandboxes.gone("conv-s1", "released", world.clock.now())
    for answer in (daemon.say("pull"), daemon.say("done", id=COMMAND, result={"state": "exited"})):
        assert answer["statusCode"] == 410
    assert daemon.hello() == 410


def test_a_launcher_that_may_not_start_it_says_why(daemon: Daemon) -> None:
    stranger = daemon.say("refused", enrolCode="wrong", reason="x", remedy="y")
    assert (stranger["statusCode"], state(daemon)) == (401, SandboxState.REQUESTED)
    said = {"enrolCode": daemon.code, "reason": "No isolation.", "remedy": "Allow user namespaces."}
    assert daemon.say("refused", **said)["statusCode"] == 200
    sandbox = daemon.deployed.world.outside.sandbox("conv-s1")
    assert sandbox is not None
    assert (sandbox.state, sandbox.reason) == (SandboxState.GONE, "No isolation. Allow user namespaces.")


# --- frames ---


@pytest.mark.parametrize(
    ("verb", "body"),
    [
        ("pull", {"boot": ""}),
        ("pull", {"boot": "b" * 201}),
        ("pull", {"boot": 5}),
        ("done", {"id": "x" * 201, "result": {}}),
        ("done", {"id": COMMAND}),
        ("done", {"id": COMMAND, "result": "text"}),
        ("done", {"id": COMMAND, "result": {"output": "x" * (5 * 1024 * 1024)}}),
        ("hello", {"tokenHash": "short"}),
        ("hello", {"limits": {"x": "y" * 20_000}}),
        ("hello", {"isolation": "yes"}),
    ],
)
def test_frames_that_are_wrong_or_too_large_are_bad_requests(
    daemon: Daemon, verb: str, body: dict[str, Any]
) -> None:
    works(daemon)
    said = {"tokenHash": digest(TOKEN), "enrolCode": daemon.code, "isolation": GUARDED, **body}
    assert daemon.say(verb, **said)["statusCode"] == 400
    assert command(daemon).state is CommandState.CLAIMED


@pytest.mark.parametrize("body", ["", "{", "[]", "null", "\x00", '{"boot": "\\ud800"}', "[" * 10_000])
def test_what_is_no_json_object_is_a_bad_request(daemon: Daemon, body: str) -> None:
    answer = daemon.deployed.call(link, http("/link/v1/sandboxes/conv-s1/pull", body, token=TOKEN))
    assert answer["statusCode"] == 400


@pytest.mark.parametrize(
    "path", ["", "/", "/link/v1", "/link/v1/sandboxes/conv-s1", "/link/v1/sandboxes/conv-s1/pull/x"]
)
def test_paths_that_the_link_does_not_have_are_refused(daemon: Daemon, path: str) -> None:
    assert daemon.deployed.call(link, http(path, {"boot": "b"}, token=TOKEN))["statusCode"] in (401, 404)


def test_a_store_that_is_busy_asks_the_daemon_to_come_again(daemon: Daemon) -> None:
    works(daemon)

    def busy(*arguments: Any, **more: Any) -> None:
        raise StoreUnavailable("throttled")

    daemon.deployed.world.sandboxes.link.journal.sandboxes.finish_command = busy  # type: ignore[union-attr,method-assign]
    assert daemon.done() == 503


# --- the bell ---


def connects(daemon: Daemon, *, sandbox: str = "conv-s1", token: str = TOKEN, kind: str = "CONNECT") -> int:
    event = websocket(
        kind, headers={"Authorization": f"Bearer {token}"}, queryStringParameters={"sandbox": sandbox}
    )
    return int(daemon.deployed.call(link, event)["statusCode"])


def test_the_bell_of_a_daemon_is_kept_and_a_strangers_is_not(daemon: Daemon) -> None:
    assert connects(daemon) == 401  # before its hello
    assert daemon.hello() == 200
    assert connects(daemon, token=OTHER) == 401
    assert connects(daemon, sandbox="other-s1") == 401
    assert connects(daemon) == 200
    sandbox = daemon.deployed.world.outside.sandbox("conv-s1")
    assert sandbox is not None
    assert sandbox.connection == "L0SM9cOFvHcCIhw="


def test_a_bell_without_words_of_its_own_is_refused(daemon: Daemon) -> None:
    assert daemon.deployed.call(link, websocket("CONNECT"))["statusCode"] == 401
    assert connects(daemon, kind="EXPLODE") == 400


@pytest.mark.parametrize("event", [websocket("MESSAGE", body='{"action":"ping"}'), websocket("DISCONNECT")])
def test_pings_and_ends_need_no_answer(daemon: Daemon, event: dict[str, Any]) -> None:
    assert daemon.deployed.call(link, event)["statusCode"] == 200
