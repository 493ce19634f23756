"""The source of a run: pinned once, copied into each sandbox before its setup, tried again where that helps."""

import hashlib
from dataclasses import replace
from typing import Any

import pytest
from nodus_core.conversations.context import ArchiveSource, Context, GitSource, ModelChoice
from nodus_core.conversations.sources import SourceRefused, SourceUnavailable
from nodus_core.conversations.sourcing import MOST_ATTEMPTS
from nodus_core.inference.exchange import ModelReply, ModelRequest
from nodus_core.journal.objects import versioned
from nodus_core.kernel.objects import Object, ObjectKey
from nodus_core.kernel.text import Inline
from nodus_core.testing.scripted_model import Step, says
from nodus_core.testing.scripted_sandbox import exited
from nodus_core.testing.world import NAMES, World

from tests.unit.conversations.test_lost_sandboxes import status, steps

COMMIT, LATER = "a" * 40, "b" * 40
PLAIN = Context("agent", 1, "You are careful.", ModelChoice("Nodus"), working_dir="/work/x")
CONTEXT = replace(PLAIN, setup="make", source=GitSource("acme/site", "main", "code"))
URL = "https://downloads.example.com/site-1.0.tar.gz"
ARCHIVED = replace(PLAIN, source=ArchiveSource(URL, None, 1))
LOOK = says("look", ("run_command", {"command": "ls"}))
DONE = says("done")


class Sourced(World):
    """A world with a Connection, whose daemons keep what they were asked to unpack, by sandbox."""

    def __init__(self, steps: list[ModelReply], *results: dict[str, Any], dies_at: int | None = None) -> None:
        super().__init__(self._play, self._behave)
        self._steps, self._results, self._dies_at = steps, list(results), dies_at
        self.unpacked: list[dict[str, Any]] = []
        key = ObjectKey(NAMES.org, NAMES.project, "Connection", "code")
        spec = '{"type": "Local", "local": {"repositories": ["acme/site"]}}'
        now = self.clock.now()
        connection = versioned(Object(key, "uid-code", 0, 1, Inline(spec), now), now)
        self.outside.objects.create(connection, now)

    def _play(self, request: ModelRequest, number: int) -> Step:
        if number == self._dies_at:
            for daemon in self.sandboxes.daemons.values():
                daemon.alive = False
        return self._steps[number]

    def _behave(self, kind: str, request: dict[str, Any]) -> dict[str, Any]:
        if kind != "restore":
            return exited("out\n")
        self.unpacked.append(request)
        return self._results.pop(0) if self._results else {"state": "exited", "entries": 3, "bytes": 60}


def names(world: World) -> list[tuple[str, str]]:
    return [(step["name"], step["state"]) for step in steps(world)]


@pytest.mark.req("NOD-153", "NOD-154", "NOD-157", "NOD-158")
def test_the_copy_comes_after_the_sandbox_and_before_setup_and_model() -> None:
    world = Sourced([LOOK, DONE])
    world.admit(context=CONTEXT)
    world.settle()
    assert status(world)["phase"] == "Succeeded"
    assert status(world)["source"] == {"repo": "acme/site", "ref": "main", "commit": COMMIT}
    assert [name for name, _ in names(world)][:5] == [
        "sandbox",
        "source",
        "setup",
        "turn-1.route",
        "turn-1.model.1",
    ]
    (copy,) = [step for step in steps(world) if step["name"] == "source"]
    assert (copy["kind"], copy["state"], copy["guarantee"]) == ("source", "Completed", "AtLeastOnce")
    assert copy["input"] == "acme/site main"
    assert copy["preview"].startswith(f"{COMMIT}: 3 entries, 60 bytes")
    (order,) = world.unpacked
    assert (order["path"], order["outerLinks"]) == ("/work/x", False)
    assert order["sha256"] in order["get"]
    assert order["size"] == len(COMMIT)
    assert [(remote.type, remote.repo, ref) for remote, ref in world.repositories.asked] == [
        ("Local", "acme/site", "main")
    ]


@pytest.mark.req("NOD-153", "NOD-165")
def test_another_sandbox_gets_the_same_commit_without_a_fetch() -> None:
    world = Sourced([LOOK, LOOK, LOOK, DONE], dies_at=1)
    world.repositories.commits = [COMMIT, LATER]
    world.admit(context=CONTEXT)
    world.settle()
    assert status(world)["phase"] == "Succeeded"
    shown = [name for name, _ in names(world)]
    assert [name for name in shown if not name.startswith("turn")] == [
        *("sandbox", "source", "setup", "sandbox.2", "source.2", "setup.2"),
    ]
    assert len(world.repositories.asked) == 1
    first, second = world.unpacked
    assert first["sha256"] == second["sha256"]
    assert status(world)["source"]["commit"] == COMMIT


@pytest.mark.req("NOD-165", "NOD-158")
def test_a_follow_up_copies_nothing() -> None:
    world = Sourced([LOOK, DONE, LOOK, DONE])
    world.admit(context=CONTEXT, keep_alive=True)
    world.settle()
    world.say("And now?")
    world.settle()
    assert len(status(world)["turns"]) == 2
    assert len(world.unpacked) == len(world.repositories.asked) == 1
    assert [name for name, _ in names(world)].count("source") == 1


@pytest.mark.req("NOD-153", "NOD-154", "NOD-165")
def test_an_archive_is_fetched_once_and_each_sandbox_gets_it() -> None:
    world = Sourced([LOOK, LOOK, LOOK, DONE], dies_at=1)
    world.downloads.archives = [b"first", b"second"]
    world.admit(context=ARCHIVED)
    world.settle()
    digest = hashlib.sha256(b"first").hexdigest()
    assert status(world)["phase"] == "Succeeded"
    assert status(world)["source"] == {"url": URL, "sha256": digest}
    assert world.downloads.asked == [(URL, None)]
    assert "rawBytes" not in next(step for step in steps(world) if step["name"] == "source")
    assert [(order["sha256"], order["size"], order["strip"]) for order in world.unpacked] == [
        (digest, 5, 1),
        (digest, 5, 1),
    ]
    (copy,) = [step for step in steps(world) if step["name"] == "source"]
    assert (copy["input"], copy["preview"]) == (URL, f"{digest}: 5 bytes, unpacked.")


@pytest.mark.req("NOD-153", "FLD-04")
def test_the_host_of_an_archive_is_asked_again_too() -> None:
    world = Sourced([DONE])
    world.downloads.archives = [SourceUnavailable("busy"), b"an archive"]
    world.admit(context=ARCHIVED)
    world.settle()
    assert status(world)["phase"] == "Succeeded"
    assert len(world.downloads.asked) == 2


@pytest.mark.req("NOD-154", "FLD-15")
@pytest.mark.parametrize("reason", ["hostile", "damaged", "too_large"])
def test_an_archive_that_is_refused_is_not_tried_again(reason: str) -> None:
    refused = {"state": "failed", "reason": reason, "message": "The archive's entry '../x' climbs"}
    world = Sourced([], refused)
    world.admit(context=ARCHIVED)
    world.settle()
    assert (status(world)["phase"], status(world)["reason"]) == ("Failed", "SourceFailed")
    assert "'../x' climbs" in status(world)["message"]
    assert len(world.unpacked) == 1
    assert not world.models.requests


@pytest.mark.req("NOD-151")
@pytest.mark.parametrize(
    ("error", "words"),
    [
        (SourceRefused("acme/site has no branch and no tag 'main'"), "no branch and no tag 'main'"),
        (None, "there is no Connection 'code' in this project any more"),
    ],
)
def test_what_cannot_be_copied_ends_the_run_before_any_model(error: Exception | None, words: str) -> None:
    world = Sourced([])
    context = CONTEXT
    if error is None:
        key = ObjectKey(NAMES.org, NAMES.project, "Connection", "code")
        obj = world.outside.object(key)
        assert obj is not None
        world.outside.objects.remove(obj, world.clock.now())
    else:
        world.repositories.commits = [error]
    world.admit(context=context)
    world.settle()
    assert (status(world)["phase"], status(world)["reason"]) == ("Failed", "SourceFailed")
    assert words in status(world)["message"]
    assert "source" not in status(world)
    assert names(world) == [("sandbox", "Completed"), ("source", "Failed")]
    assert not world.models.requests
    assert not any(daemon.alive for daemon in world.sandboxes.daemons.values())


@pytest.mark.req("NOD-153", "FLD-04")
def test_a_host_that_does_not_answer_is_asked_again_and_the_run_says_so() -> None:
    world = Sourced([DONE])
    world.repositories.commits = [SourceUnavailable("busy", 20.0), SourceUnavailable("busy"), COMMIT]
    seen: list[Any] = []
    sleep = world.clock.sleep
    world.clock.sleep = lambda s: (sleep(s), seen.append(status(world).get("reason")))[0]  # type: ignore[method-assign]
    world.admit(context=CONTEXT)
    world.settle()
    assert status(world)["phase"] == "Succeeded"
    assert "SourceUnavailable" in seen
    assert "reason" not in status(world)
    (copy,) = [step for step in steps(world) if step["name"] == "source"]
    assert (copy["attempt"], copy["state"]) == (3, "Completed")


@pytest.mark.req("NOD-153")
def test_a_host_that_never_answers_ends_the_run() -> None:
    world = Sourced([])
    world.repositories.commits = [SourceUnavailable("the host of acme/site answers 503")]
    world.admit(context=CONTEXT)
    world.settle()
    assert (status(world)["phase"], status(world)["reason"]) == ("Failed", "SourceFailed")
    assert len(world.repositories.asked) == MOST_ATTEMPTS


@pytest.mark.req("NOD-154")
@pytest.mark.parametrize(
    "result",
    [
        {"state": "failed", "reason": "transfer", "message": "the address has expired"},
        {"state": "lost", "reason": "daemon_restarted"},
    ],
)
def test_a_copy_that_failed_or_was_lost_is_made_again_in_the_same_sandbox(result: dict[str, Any]) -> None:
    world = Sourced([DONE], result)
    world.admit(context=CONTEXT)
    world.settle()
    assert status(world)["phase"] == "Succeeded"
    assert len(world.unpacked) == 2
    assert [name for name, _ in names(world)][:3] == ["sandbox", "source", "setup"]
    assert next(step for step in steps(world) if step["name"] == "source")["attempt"] == 2


@pytest.mark.req("NOD-154", "FLD-15")
def test_a_copy_that_always_fails_ends_the_run() -> None:
    refused = {"state": "failed", "reason": "no_space", "message": "'/work/x' could not be filled"}
    world = Sourced([], *[refused] * MOST_ATTEMPTS)
    world.admit(context=CONTEXT)
    world.settle()
    assert (status(world)["phase"], status(world)["reason"]) == ("Failed", "SourceFailed")
    assert "could not be filled" in status(world)["message"]
    assert not world.models.requests


@pytest.mark.req("NOD-045", "NOD-091")
def test_a_run_that_is_cancelled_while_its_source_is_unpacked_ends() -> None:
    world = Sourced([])
    unpack = world._behave

    def stopped(kind: str, request: dict[str, Any]) -> dict[str, Any]:
        world.stop()
        return {**unpack(kind, request), "state": "lost", "reason": "killed"}

    world.sandboxes._behaviour = stopped
    world.admit(context=CONTEXT)
    world.settle()
    assert status(world)["phase"] == "Cancelled"
    assert names(world) == [("sandbox", "Completed"), ("source", "Cancelled")]
    assert not any(daemon.alive for daemon in world.sandboxes.daemons.values())
