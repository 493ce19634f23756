"""What commands of runs and of Sandboxes reach, on the deployed cloud: what their policy names, by their proxy."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from localstack.testing import TestCloud
from tests.integration.greeting_host import greeting_host
from tests.integration.runs.person import Person, in_turn, manifest
from tests.integration.waiting import until

pytestmark = [pytest.mark.timeout(180, func_only=True)]

ALLOWED = {"egress": {"policy": "AllowList", "allow": ["files.test", "*.cloud.test", "odd.files.test:8080"]}}
OPEN = {"egress": {"policy": "Open"}}
CURL = "curl -sS -m 10 -o - -w ' %{http_code}\\n'"


@pytest.fixture(scope="module")
def host(local_cloud: TestCloud) -> Iterator[int]:
    """A host of the machine's that sandboxes reach as files.test, and the cloud's TLS listener as api.cloud.test."""

    with greeting_host("\n") as port:
        here = f"127.0.0.1:{port}"
        tls = local_cloud.cloud.tls_endpoint.removeprefix("https://")
        places = {
            **dict.fromkeys(("files.test:80", "other.test:80", "odd.files.test:8080"), here),
            **dict.fromkeys(("api.cloud.test:443", "cloud.test:443"), tls),
        }
        words = ",".join(f"{place}={led}" for place, led in places.items())
        replace(local_cloud, extra={**local_cloud.extra, "NODUS_EGRESS_TRUSTED": words}).run("up")
        yield port


def conditions(status: dict[str, Any]) -> dict[str, tuple[str, str | None]]:
    return {each["type"]: (each["status"], each.get("reason")) for each in status["conditions"]}


@pytest.mark.req("NOD-160", "NOD-458", "NOD-459", "NOD-460", "NOD-461")
def test_a_run_reaches_what_its_agent_allowed_when_it_was_admitted(person: Person, host: int) -> None:
    person.agent("listed", network=ALLOWED, setup=f"{CURL} http://files.test/setup > setup.txt")
    commands = {
        "setup": "cat setup.txt",
        "port": f"{CURL} http://odd.files.test:8080/",
        "tls": f"{CURL} -k https://api.cloud.test/ -o /dev/null",
        "apex": f"{CURL} -k https://cloud.test/",
        "unlisted": f"{CURL} http://other.test/",
        "no proxy": f"{CURL} --noproxy '*' http://files.test/",
        "machine": f"{CURL} --noproxy '*' http://127.0.0.1:{host}/",
        "metadata": f"{CURL} http://169.254.169.254/latest/meta-data/",
        "variables": "env | grep -i proxy | sort",
    }
    run = person.start("listed", in_turn("; echo ==; ".join(f"{text} 2>&1" for text in commands.values())))
    person.agent("listed", network={"egress": {"policy": "Deny"}})
    status = run.succeeded()
    assert status["sandbox"]["egress"] == "AllowList"
    assert conditions(status)["Isolated"] == ("True", None)
    assert conditions(status)["EgressEnforced"] == ("True", "Network")
    pieces = run.answer().split("==\n")
    assert len(pieces) == len(commands), pieces
    said = dict(zip(commands, pieces, strict=True))
    assert "hello from files.test\n 200" in said["setup"], said
    assert "hello from odd.files.test:8080\n 200" in said["port"], said
    assert "answers on loopback names only" in said["tls"], said  # the cloud itself, over TLS
    assert "response 403" in said["apex"] or "403 from proxy" in said["apex"], said
    assert "other.test:80 is closed: the egress policy AllowList names it not" in said["unlisted"], said
    assert "Could not resolve host" in said["no proxy"], said
    assert "hello" not in said["machine"], said
    assert "AllowList names it not" in said["metadata"], said
    assert "HTTPS_PROXY=http://127.0.0.1:3128" in said["variables"], said


@pytest.mark.req("NOD-457", "NOD-160")
def test_by_default_the_setup_cannot_load_anything(person: Person, host: int) -> None:
    person.agent("shut", setup=f"{CURL} http://files.test/")
    run = person.start("shut", "Say hello.")
    status = run.ended()
    assert status["phase"] == "Failed"
    assert "Could not resolve host" in run.step("setup")["preview"]


@pytest.mark.req("NOD-401", "NOD-460", "NOD-023")
def test_a_sandbox_of_ones_own_is_open_to_the_internet_and_to_nothing_private(
    person: Person, host: int
) -> None:
    name = f"open-{secrets.token_hex(4)}"
    made = person.call("POST", "sandboxes", manifest("Sandbox", name, {"network": OPEN}))
    assert made.status_code == 201, made.text
    path = f"sandboxes/{name}"
    try:
        status = until(
            lambda: person.call("GET", path).json()["status"], lambda status: status["phase"] == "Running"
        )
        assert conditions(status)["EgressEnforced"] == ("True", "Network")
        assert command(person, path, f"{CURL} http://other.test/") == "hello from other.test\n 200\n"
        for place in ("169.254.169.254", "169.254.170.2", "10.0.0.1", "127.0.0.2", "[::ffff:10.0.0.1]"):
            assert "403" in command(person, path, f"{CURL} http://{place}/")
        assert "other.test" not in command(
            person, path, f"{CURL} --noproxy '*' http://other.test/ 2>&1 | grep -v resolve"
        )
    finally:
        person.call("DELETE", path)


def command(person: Person, path: str, text: str) -> str:
    """The output of a command in a Sandbox."""
    placed = person.call("POST", f"{path}/commands", {"command": text, "requestKey": secrets.token_hex(8)})
    assert placed.status_code == 202, placed.text
    name = placed.json()["metadata"]["name"]
    until(
        lambda: person.call("GET", f"{path}/commands/{name}").json()["status"]["state"],
        lambda state: state not in ("Pending", "Running"),
    )
    return person.call("GET", f"{path}/commands/{name}/output").text
