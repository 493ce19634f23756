"""Images that are built: Building, then Completed with a digest, or Failed and why (NOD-446 … NOD-448, NODQ-104)."""

import json
from datetime import timedelta
from random import Random
from string import ascii_letters, digits
from typing import Any

import pytest
from nodus_core.conversations.build_keeping import BuildKeeping
from nodus_core.conversations.expiry import Expiry
from nodus_core.conversations.images import ImageSources
from nodus_core.conversations.left_images import LeftImagesKeeping
from nodus_core.conversations.loose_values import Reclaim
from nodus_core.conversations.sweeper import Sweep, Sweeper
from nodus_core.journal.builder import BuildOrder, BuildReport
from nodus_core.journal.image_builds import GRACE
from nodus_core.kernel.errors import RetryableError, TerminalError
from nodus_core.testing.scripted_builder import PLACE, ScriptedBuilder
from nodus_core.testing.scripted_sandbox import RUNNING

from tests.unit.api.rest import Rest, manifest
from tests.unit.api.test_api_tables import KUBECTL
from tests.unit.conversations.test_images import OWN, PYTHON, TOOLS, Registry, digest

BASE = f"{PYTHON.rpartition(':')[0]}@{digest('b')}"
SETUP = "apt-get install -y figlet"


class Deployed(Rest):
    """A deployment that builds images; the test is its sweeper."""

    def __init__(self) -> None:
        self.registry = Registry()
        sources = ImageSources(
            {TOOLS: f"{OWN}/nodus/agent-tools:latest"}, self.registry, self.registry, builds=PLACE
        )
        super().__init__(behaviour=lambda kind, request: RUNNING, images=sources)
        self.builder: ScriptedBuilder = ScriptedBuilder(self.world.clock)

    def sweep(self, *, has_builder: bool = True, seconds: float = 20.0) -> Sweep:
        world = self.world
        values = Reclaim(world.outside, world.vault, world.clock)
        expiry = Expiry(world.outside, world.payloads, world.clock)
        sweeper = Sweeper(
            world.kicks,
            world.task_sweep,
            world.pool,
            values,
            expiry,
            world.batches,
            BuildKeeping(world.batches.shelf, self.builder if has_builder else None),
        )
        return sweeper.sweep(lambda: seconds)

    def wait(self, minutes: float) -> None:
        """So much time passes, in which the sweeper comes once a minute."""
        for _ in range(int(minutes)):
            self.world.clock.advance(60)
            self.sweep()

    def image(self, name: str = "tools", /, **spec: Any) -> dict[str, Any]:
        answer = self.apply(
            f"environmentimages/{name}", manifest("EnvironmentImage", name, {"image": PYTHON, **spec})
        )
        assert answer.code in (200, 201), answer.json
        return answer.json["status"]

    def status(self, name: str = "tools") -> dict[str, Any]:
        return self.get(f"environmentimages/{name}").json["status"]

    def left(self) -> list[str]:
        """Rows of builds and of deleted images."""
        return [key.pk for key in self.store.rows() if key.pk.startswith(("build#", "images#"))]


@pytest.fixture
def rest() -> Deployed:
    return Deployed()


@pytest.mark.req("NOD-446", "NOD-447", "NODQ-104", "NOD-448")
def test_a_setup_is_built_from_the_digest_of_its_base_and_then_used_by_its_own(rest: Deployed) -> None:
    made = rest.image(setup=SETUP)
    assert (made["state"], made["conditions"][0]["reason"]) == ("Building", "Building")
    assert "digest" not in made
    rest.agent(image="tools")
    refused = rest.run()
    assert (refused.code, refused.fields) == (422, ["spec.agent"])
    assert "is Building" in refused.json["message"]
    assert [each["image"] for each in rest.get("imagechoices").json["items"]] == [TOOLS]
    rest.registry.images[PYTHON] = digest("c")
    rest.wait(6)
    (build,) = rest.builder.builds.values()
    assert (build.order.base, build.order.setup) == (BASE, SETUP)
    done = rest.status()
    assert (done["state"], done["digest"]) == ("Completed", rest.builder.digest_of(build.order))
    uid = rest.get("environmentimages/tools").json["metadata"]["uid"]
    assert done["reference"] == f"{PLACE}/acme/web/{uid}@{done['digest']}"
    assert done["conditions"][0]["status"] == "True"
    assert rest.left() == []
    assert rest.run().code == 201
    rest.world.pass_time(1)
    assert list(rest.world.sandboxes.images.values()) == [done["reference"]]


@pytest.mark.req("NOD-447")
def test_a_build_that_fails_says_why_with_the_end_of_its_output_and_what_to_do(rest: Deployed) -> None:
    rest.image(setup="false # no such thing")
    rest.wait(6)
    status = rest.status()
    assert (status["state"], status["reason"]) == ("Failed", "BuildFailed")
    for words in ("mend spec.setup", "exit status 1", "E: no such package"):
        assert words in status["message"]
    assert status["conditions"][0]["message"] == status["message"]
    assert rest.left() == []


@pytest.mark.req("NODQ-104")
def test_whoever_waits_and_watches_sees_each_state_come(rest: Deployed) -> None:
    """What `kubectl get` shows, and what `kubectl wait --for=jsonpath={.status.state}=Completed` listens to."""

    def shown() -> tuple[str, str | None]:
        table = rest.get("environmentimages", headers={"accept": KUBECTL}).json
        names = [column["name"] for column in table["columnDefinitions"]]
        (row,) = (dict(zip(names, each["cells"], strict=True)) for each in table["rows"])
        return row["State"], row["Digest"]

    rest.image(setup=SETUP)
    begun = rest.get("environmentimages").json["metadata"]["resourceVersion"]
    assert shown() == ("Building", None)
    rest.wait(6)
    assert shown() == ("Completed", rest.status()["digest"])
    query = {"watch": "true", "timeoutSeconds": "0", "resourceVersion": begun}
    (line,) = rest.get("environmentimages", query=query).text.splitlines()
    event = json.loads(line)
    assert event["object"]["status"]["state"] == "Completed"


def test_what_a_build_says_steers_no_terminal(rest: Deployed) -> None:
    rest.builder.ending = lambda order: BuildReport(
        "failed", "so\x07", "\x1b[31mred\x1b[0m\n\tnext\x00\u202e\n"
    )
    rest.image(setup=SETUP)
    rest.wait(6)
    message = rest.status()["message"]
    assert message.endswith("\\x1b[31mred\\x1b[0m\n\tnext\\x00\\u202e\n")
    assert all(letter.isprintable() or letter in "\n\t" for letter in message)


@pytest.mark.parametrize(
    ("phase", "reason"),
    [("timed-out", "BuildTimedOut"), ("stopped", "BuildStopped"), ("missing", "BuildLost")],
)
def test_a_build_that_others_end_is_failed_by_its_own_word(rest: Deployed, phase: Any, reason: str) -> None:
    rest.builder.ending = lambda order: BuildReport(phase, "so it is", "x" * 100_000)
    rest.image(setup=SETUP)
    rest.wait(6)
    status = rest.status()
    assert (status["state"], status["reason"]) == ("Failed", reason)
    assert len(status["message"]) < 9_000


def test_a_build_that_vanishes_is_lost_after_a_while_and_not_at_once(rest: Deployed) -> None:
    rest.image(setup=SETUP)
    rest.wait(1)
    rest.builder.forgotten |= set(rest.builder.builds)
    rest.wait(5)
    assert rest.status()["state"] == "Building"
    rest.wait(10)
    assert rest.status()["reason"] == "BuildLost"


def test_an_image_that_is_not_where_its_build_put_it_is_failed(
    rest: Deployed, caplog: pytest.LogCaptureFixture
) -> None:
    rest.image(setup=SETUP)
    rest.wait(1)
    (build,) = rest.builder.builds.values()
    rest.builder.removed.append(build.order.repository)
    rest.wait(6)
    assert rest.status()["reason"] == "BuildLost"
    said = (
        f"repository {build.order.repository} has no image"  # the account's own words, for its operator alone
    )
    assert said not in rest.status()["message"]
    assert said in caplog.text


def test_a_builder_that_is_busy_is_asked_again_and_one_that_refuses_is_not(
    rest: Deployed, caplog: pytest.LogCaptureFixture
) -> None:
    rest.builder.refusal = RetryableError("as many builds run as may")
    rest.image(setup=SETUP)
    rest.wait(10)
    assert rest.status()["state"] == "Building"
    rest.builder.refusal = None
    rest.wait(6)
    assert rest.status()["state"] == "Completed"
    rest.builder.refusal = TerminalError("there is no such project")
    rest.image("other", setup=SETUP)
    rest.wait(1)
    assert rest.status("other")["reason"] == "BuildRefused"
    # What the account says is the operator's to read.
    assert "no such project" not in rest.status("other")["message"]
    assert "no such project" in caplog.text


def test_a_start_whose_answer_was_lost_starts_no_second_build(rest: Deployed) -> None:
    rest.builder.lost = 2
    rest.image(setup=SETUP)
    rest.wait(6)
    assert rest.status()["state"] == "Completed"
    assert len(rest.builder.builds) == 1


def test_after_its_token_is_forgotten_a_second_build_counts_and_the_first_changes_nothing(
    rest: Deployed,
) -> None:
    rest.builder.lost = 1
    rest.image(setup=SETUP)
    rest.wait(1)
    rest.world.clock.advance(600)
    rest.wait(6)
    assert rest.status()["state"] == "Completed"
    assert len({build.token for build in rest.builder.builds.values()}) == 2
    assert rest.left() == []


@pytest.mark.req("NOD-448")
def test_another_spec_ends_the_build_and_begins_another_and_what_was_pinned_stays(rest: Deployed) -> None:
    rest.image(setup=SETUP)
    rest.wait(6)
    first = rest.status()
    rest.post("sandboxes", manifest("Sandbox", "mine", {"image": "tools"}))
    rest.world.pass_time(1)
    assert rest.image(setup="second")["state"] == "Building"
    rest.wait(1)
    assert rest.image(setup="third")["state"] == "Building"
    rest.wait(6)
    second, third = list(rest.builder.builds.values())[1:]
    assert (second.stopped, third.stopped) == (True, False)
    assert rest.status()["digest"] == rest.builder.digest_of(third.order) != first["digest"]
    assert rest.get("sandboxes/mine").json["status"]["imageDigest"] == first["digest"]
    assert rest.left() == []


def test_a_spec_without_setup_ends_the_build_too(rest: Deployed) -> None:
    rest.image(setup=SETUP)
    rest.wait(1)
    assert rest.image()["digest"] == digest("b")
    rest.wait(2)
    assert rest.builder.running == []
    assert rest.status()["reference"] == BASE
    assert rest.left() == []


def test_a_label_that_comes_meanwhile_is_kept(rest: Deployed) -> None:
    rest.image(setup=SETUP)
    rest.wait(1)
    assert rest.patch("environmentimages/tools", {"metadata": {"labels": {"a": "b"}}}).code == 200
    assert len(rest.builder.builds) == 1
    rest.wait(6)
    shown = rest.get("environmentimages/tools").json
    assert (shown["status"]["state"], shown["metadata"]["labels"]) == ("Completed", {"a": "b"})


def test_building_again_goes_on_with_a_build_that_runs_and_else_makes_another(rest: Deployed) -> None:
    rest.image(setup=SETUP)
    rest.wait(1)
    assert rest.post("environmentimages/tools/build").json["status"]["state"] == "Building"
    rest.wait(6)
    assert len(rest.builder.builds) == 1
    first = rest.status()["digest"]
    rest.registry.images[PYTHON] = digest("c")
    assert rest.post("environmentimages/tools/build").json["status"]["state"] == "Building"
    rest.wait(6)
    assert len(rest.builder.builds) == 2
    assert rest.status()["digest"] != first


def test_the_deletion_of_an_image_stops_its_build_and_later_removes_what_was_made(rest: Deployed) -> None:
    rest.image(setup=SETUP)
    rest.wait(1)
    (build,) = rest.builder.builds.values()
    assert rest.call("DELETE", "environmentimages/tools").code == 200
    rest.wait(1)
    assert build.stopped
    rest.wait(GRACE / timedelta(minutes=1) + 1)
    assert rest.builder.removed == [build.order.repository]
    assert rest.left() == []


def test_a_build_that_nobody_has_asked_for_yet_is_never_started_once_its_image_is_deleted(
    rest: Deployed,
) -> None:
    rest.image(setup=SETUP)
    rest.call("DELETE", "environmentimages/tools")
    rest.wait(3)
    assert rest.builder.builds == {}


@pytest.mark.req("NOD-448")
def test_what_was_built_stays_as_long_as_a_run_or_a_sandbox_is_made_of_it(rest: Deployed) -> None:
    rest.image(setup=SETUP)
    rest.wait(6)
    rest.post("sandboxes", manifest("Sandbox", "mine", {"image": "tools"}))
    rest.agent(image="tools")
    rest.run(keepAlive=True)
    rest.agent("plain")
    rest.run("another", agent="plain", keepAlive=True)
    rest.world.pass_time(60)
    rest.call("DELETE", "environmentimages/tools")
    day = 24 * 3600
    for ends in ("agentruns/hello-run/cancel", "sandboxes/mine"):
        rest.world.clock.advance(2 * day)
        rest.sweep()
        assert rest.builder.removed == []
        rest.call("POST" if ends.endswith("cancel") else "DELETE", ends)
        rest.world.pass_time(600)
    for _ in range(3):
        rest.world.clock.advance(2 * day)
        rest.sweep()
    assert len(rest.builder.removed) == 1
    assert rest.left() == []


def test_a_look_that_has_no_time_goes_on_where_it_stopped(rest: Deployed) -> None:
    rest.image(setup=SETUP)
    rest.wait(6)
    uid = rest.get("environmentimages/tools").json["metadata"]["uid"]
    names = [f"run-{number}" for number in range(5)]
    rest.agent()
    for name in names:
        rest.run(name)
    rest.world.pass_time(600)  # each of them is over, and is made of nothing any more
    rest.call("DELETE", "environmentimages/tools")
    world, seen = rest.world, list[tuple[str, ...]]()
    keeping = LeftImagesKeeping(world.outside, world.clock, rest.builder)
    for _ in range(20):
        left = [60.0, 60.0]
        if keeping.clear(uid, lambda left=left: left.pop() if left else 0.0):
            break
        note = world.outside.left_images(uid)
        assert note is not None
        seen.append(note.passed)
    assert [place[1] for place in seen if place[0] == "AgentRun"] == [names[1], names[3]]
    assert len(rest.builder.removed) == 1


def test_an_image_of_the_same_name_that_comes_later_holds_nothing_of_the_former(rest: Deployed) -> None:
    rest.image(setup=SETUP)
    rest.wait(6)
    first = rest.get("environmentimages/tools").json["metadata"]["uid"]
    rest.call("DELETE", "environmentimages/tools")
    rest.image(setup="another")
    rest.wait(6)
    rest.post("sandboxes", manifest("Sandbox", "mine", {"image": "tools"}))
    rest.world.pass_time(60)
    rest.world.clock.advance(7200)
    rest.sweep()
    assert rest.builder.removed == [f"acme/web/{first}"]


def test_a_setup_that_no_build_takes_and_a_base_that_was_built_are_refused_by_name(rest: Deployed) -> None:
    noise = "".join(Random(7).choices(ascii_letters + digits, k=60_000))
    assert rest.image("long", setup=f"# {noise}")["reason"] == "SetupTooLong"
    rest.image(setup=SETUP)
    rest.wait(6)
    above = rest.image("above", image="tools", setup="echo")
    assert (above["state"], above["reason"]) == ("Failed", "BaseNotBuildable")
    same = rest.image("same", image="tools")  # of which nobody knows when what it names is removed
    assert (same["state"], same["reason"]) == ("Failed", "BaseNotBuildable")
    unpullable = rest.image("none", image="public.ecr.aws/nobody/nothing:1", setup="echo")
    assert unpullable["reason"] == "ImageUnpullable"
    rest.wait(3)
    assert len(rest.builder.builds) == 1


def test_where_the_builder_is_gone_what_waits_for_it_is_failed_by_name(rest: Deployed) -> None:
    rest.image(setup=SETUP)
    rest.wait(1)
    rest.world.clock.advance(90)
    rest.sweep(has_builder=False)
    assert (rest.status()["state"], rest.status()["reason"]) == ("Failed", "NoBuilds")
    assert rest.left() == []


def test_a_dry_run_builds_nothing(rest: Deployed) -> None:
    shown = rest.apply(
        "environmentimages/tools",
        manifest("EnvironmentImage", "tools", {"image": PYTHON, "setup": SETUP}),
        query={"dryRun": "All"},
    )
    assert shown.json["status"]["state"] == "Building"
    rest.wait(3)
    assert rest.builder.builds == {}
    assert rest.left() == []


def test_the_sweeper_leaves_builds_for_later_when_its_time_is_short(rest: Deployed) -> None:
    rest.image(setup=SETUP)
    rest.world.clock.advance(60)
    assert (rest.sweep(seconds=10.0).finished, rest.builder.builds) == (False, {})


def test_one_build_that_cannot_be_looked_at_keeps_no_other_from_it(rest: Deployed) -> None:
    def ending(order: BuildOrder) -> BuildReport:
        if order.setup == "broken":
            raise TerminalError("no such status")
        return BuildReport("completed")

    rest.builder.ending = ending
    for name in ("broken", "a", "b"):
        rest.image(name, setup=name)
    rest.wait(6)
    assert [rest.status(name)["state"] for name in ("broken", "a", "b")] == [
        "Building",
        "Completed",
        "Completed",
    ]
