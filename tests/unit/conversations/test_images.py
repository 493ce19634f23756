"""What sandboxes are made of: a name becomes a digest once, and stays it (NOD-021, NOD-446 … NOD-452, NODQ-82)."""

from typing import Any

import pytest
from nodus_core.conversations.images import ImageSources
from nodus_core.kernel.errors import RetryableError, TerminalError
from nodus_core.testing.scripted_sandbox import RUNNING

from tests.unit.api.rest import Rest, manifest

OWN = "123456789012.dkr.ecr.eu-central-1.amazonaws.com"
TOOLS = "nodus/agent-tools"
PYTHON = "public.ecr.aws/docker/library/python:3.12"


def digest(letter: str) -> str:
    return f"sha256:{letter * 64}"


class Registry:
    """A registry whose tags the test moves."""

    def __init__(self, **images: str) -> None:
        self.images = {f"{OWN}/nodus/agent-tools:latest": digest("a"), PYTHON: digest("b"), **images}
        self.asked: list[str] = []
        self.silent = False

    def digest(self, repository: str, version: str, host: str) -> str:
        image = f"{host}/{repository}:{version}"
        self.asked.append(image)
        if self.silent:
            raise RetryableError(f"registry {host} does not answer", 5)
        if image not in self.images:
            raise TerminalError(f"registry {host} has no image {image}")
        return self.images[image]


class Deployed(Rest):
    """A deployment with container images."""

    def __init__(self, **more: Any) -> None:
        self.registry = Registry()
        catalogue = {TOOLS: f"{OWN}/nodus/agent-tools:latest"}
        super().__init__(images=ImageSources(catalogue, self.registry, self.registry), **more)

    def image(self, name: str = "tools", /, **spec: Any) -> dict[str, Any]:
        answer = self.apply(f"environmentimages/{name}", manifest("EnvironmentImage", name, spec))
        assert answer.code in (200, 201), answer.json
        return answer.json["status"]


@pytest.fixture
def rest() -> Deployed:
    return Deployed(behaviour=lambda kind, request: RUNNING)


def started(rest: Rest) -> list[str | None]:
    return list(rest.world.sandboxes.images.values())


@pytest.mark.req("NOD-021", "NOD-450", "NOD-448")
def test_the_default_is_the_catalogues_image_by_its_digest(rest: Deployed) -> None:
    rest.agent()
    rest.run()
    rest.world.pass_time(1)
    status = rest.get("agentruns/hello-run").json["status"]
    assert (status["sandbox"]["image"], status["sandbox"]["imageDigest"]) == (TOOLS, digest("a"))
    assert started(rest) == [f"{OWN}/nodus/agent-tools@{digest('a')}"]
    pinned = next(each for each in status["conditions"] if each["type"] == "ImagePinned")
    assert (pinned["status"], pinned["message"]) == ("True", digest("a"))


@pytest.mark.req("NOD-448", "NOD-036", "NOD-025")
def test_what_was_admitted_keeps_its_digest_also_in_its_next_sandbox(rest: Deployed) -> None:
    assert rest.image(image=PYTHON)["digest"] == digest("b")
    rest.agent(image="tools")
    rest.run(keepAlive=True)
    rest.world.pass_time(1)
    rest.registry.images[PYTHON] = digest("c")
    rest.world.clock.advance(60)
    assert rest.post("environmentimages/tools/build").json["status"]["digest"] == digest("c")
    for daemon in rest.world.sandboxes.daemons.values():
        daemon.alive = False
    rest.agent(image="tools", system="Another.")
    rest.run("later")
    rest.world.pass_time(600)
    by_run = {sandbox.rpartition("-s")[0]: pull for sandbox, pull in rest.world.sandboxes.images.items()}
    pulls = {rest.get(f"agentruns/{name}").json["metadata"]["uid"]: name for name in ("hello-run", "later")}
    assert {pulls[uid]: pull.rpartition("@")[2] for uid, pull in by_run.items() if pull} == {
        "hello-run": digest("b"),
        "later": digest("c"),
    }


@pytest.mark.req("NOD-448", "NOD-452", "NOD-451")
def test_a_sandbox_that_is_started_again_is_made_of_what_it_was_made_of(rest: Deployed) -> None:
    made = rest.post("sandboxes", manifest("Sandbox", "mine", {"image": PYTHON}))
    assert made.code == 201
    rest.world.pass_time(1)
    rest.registry.images[PYTHON] = digest("c")
    rest.post("sandboxes/mine/stop")
    rest.world.settle()
    rest.post("sandboxes/mine/start")
    rest.world.pass_time(1)
    assert started(rest) == [f"public.ecr.aws/docker/library/python@{digest('b')}"] * 2
    assert rest.get("sandboxes/mine").json["status"]["imageDigest"] == digest("b")


@pytest.mark.req("NOD-446", "NOD-447", "NOD-451")
def test_only_completed_images_are_offered_and_used(rest: Deployed) -> None:
    good = rest.image("good", image=PYTHON)
    assert (good["state"], good["conditions"][0]["status"]) == ("Completed", "True")
    bad = rest.image("bad", image="public.ecr.aws/nobody/nothing:1")
    assert (bad["state"], bad["reason"]) == ("Failed", "ImageUnpullable")
    assert "has no image" in bad["message"]
    built = rest.image("built", image=PYTHON, setup="apt-get install -y figlet")
    assert (built["state"], built["reason"]) == ("Failed", "NoBuilds")
    assert rest.get("imagechoices").json["items"] == [
        {"image": TOOLS, "source": "Catalog"},
        {"image": "good", "source": "Project", "digest": digest("b")},
    ]
    for name in ("bad", "built", "missing"):
        rest.agent(image=name)
        refused = rest.run()
        assert (refused.code, refused.fields) == (422, ["spec.agent"]), refused.json
        refused = rest.post("sandboxes", manifest("Sandbox", "s", {"image": name}))
        assert (refused.code, refused.fields) == (422, ["spec.image"])
    assert started(rest) == []


@pytest.mark.req("NOD-449")
@pytest.mark.parametrize(
    "image",
    [
        "public.ecr.aws/docker/library/nothing:1",
        f"{OWN}/nodus/agent-tools:latest",
        f"{OWN}/nodus/another/projects:1",
        "public.ecr.aws/UPPER/case:1",
        "public.ecr.aws/x/y@sha256:12",
        "public.ecr.aws/x/y:bad/tag",
    ],
)
def test_an_image_that_cannot_be_pulled_is_refused_before_anything_is_stored(
    rest: Deployed, image: str
) -> None:
    rest.agent(image=image)
    stored = rest.commits
    assert (rest.run().code, rest.commits) == (422, stored)
    assert rest.post("sandboxes", manifest("Sandbox", "s", {"image": image})).fields == ["spec.image"]
    assert rest.commits == stored


def test_another_project_has_its_own_images(rest: Deployed) -> None:
    rest.image("tools", image=PYTHON)
    assert rest.get("imagechoices", project="lab").json["items"] == [{"image": TOOLS, "source": "Catalog"}]
    refused = rest.post("sandboxes", manifest("Sandbox", "s", {"image": "tools"}), project="lab")
    assert refused.code == 422


def test_a_silent_registry_is_asked_again_later_and_nothing_is_made_meanwhile(rest: Deployed) -> None:
    rest.registry.silent = True
    rest.agent(image=PYTHON)
    assert rest.run().code == 503
    assert rest.apply("environmentimages/t", manifest("EnvironmentImage", "t", {"image": PYTHON})).code == 503
    assert rest.get("environmentimages/t").code == 404
    rest.registry.silent = False
    assert rest.run().code == 201


def test_a_registry_is_asked_once_for_many_runs(rest: Deployed) -> None:
    rest.agent(image=PYTHON)
    for number in range(5):
        assert rest.run(f"r{number}").code == 201
    assert rest.registry.asked == [PYTHON]
    rest.world.clock.advance(60)
    rest.run("later")
    assert rest.registry.asked == [PYTHON] * 2


def test_another_spec_stands_for_another_image_and_the_same_one_is_not_asked_for(rest: Deployed) -> None:
    first = rest.image(image=PYTHON)
    assert rest.image(image=PYTHON) == first
    rest.registry.images["docker.io/library/debian:12"] = digest("d")
    assert rest.image(image="debian:12")["digest"] == digest("d")
    changed = rest.patch("environmentimages/tools", {"spec": {"image": PYTHON}})
    assert changed.json["status"]["digest"] == digest("b")


@pytest.mark.req("NOD-021", "NOD-449", "NOD-447")
def test_without_containers_another_image_is_refused_by_name_and_the_default_says_what_it_is() -> None:
    rest = Rest(behaviour=lambda kind, request: RUNNING)
    rest.agent(image=PYTHON)
    refused = rest.run()
    assert (refused.code, refused.json["reason"], refused.fields) == (422, "NotAvailable", ["spec.agent"])
    assert "this machine's own tools" in refused.json["message"]
    image = rest.apply("environmentimages/t", manifest("EnvironmentImage", "t", {"image": TOOLS})).json
    assert (image["status"]["state"], image["status"]["reason"]) == ("Failed", "NoImages")
    (ready,) = image["status"]["conditions"]
    assert (ready["status"], ready["reason"]) == ("False", "NoImages")
    assert rest.get("imagechoices").json["items"] == [{"image": TOOLS, "source": "Catalog"}]
    rest.agent(image=TOOLS)
    rest.run()
    rest.world.pass_time(1)
    status = rest.get("agentruns/hello-run").json["status"]
    assert status["sandbox"]["image"] == TOOLS
    assert "imageDigest" not in status["sandbox"]
    pinned = next(each for each in status["conditions"] if each["type"] == "ImagePinned")
    assert (pinned["status"], pinned["reason"]) == ("False", "MachineTools")
    assert started(rest) == [None]
