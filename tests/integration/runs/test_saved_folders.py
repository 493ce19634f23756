"""Saved folders on the deployed cloud: of a Sandbox of one's own, and of a run whose sandbox is lost."""

import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from localstack.testing import TestCloud
from tests.integration.runs.machine import room
from tests.integration.runs.person import Person, manifest
from tests.integration.waiting import until

FOLDER = {"mode": "Snapshotted", "stateDir": "/workspace"}


class Own:
    """A Sandbox of one's own, and commands in it."""

    def __init__(self, person: Person, cloud: TestCloud) -> None:
        self.person, self.cloud = person, cloud
        self.name = f"saved-{secrets.token_hex(4)}"
        answer = person.call("POST", "sandboxes", manifest("Sandbox", self.name, {"continuity": FOLDER}))
        assert answer.status_code == 201, answer.text

    @property
    def status(self) -> dict[str, Any]:
        answer = self.person.call("GET", f"sandboxes/{self.name}")
        assert answer.status_code == 200, answer.text
        return answer.json()["status"]

    def stands(self, phase: str) -> dict[str, Any]:
        return until(
            lambda: self.status,
            lambda status: status["phase"] == phase and status.get("reason") != "Stopping",
        )

    def tell(self, verb: str) -> None:
        answer = self.person.call("POST", f"sandboxes/{self.name}/{verb}", {})
        assert answer.status_code in (200, 202), answer.text

    def run(self, command: str) -> str:
        """What a command puts out."""
        body = {"command": command, "requestKey": secrets.token_hex(8)}
        answer = self.person.call("POST", f"sandboxes/{self.name}/commands", body)
        assert answer.status_code in (200, 201, 202), answer.text
        path = f"sandboxes/{self.name}/commands/{answer.json()['metadata']['name']}"
        until(
            lambda: self.person.call("GET", path).json()["status"]["state"], lambda state: state == "Exited"
        )
        return self.person.call("GET", f"{path}/output").text

    def delete(self) -> None:
        self.person.call("DELETE", f"sandboxes/{self.name}")


@pytest.fixture
def own(person: Person, local_cloud: TestCloud) -> Iterator[Own]:
    made = Own(person, local_cloud)
    yield made
    made.delete()


@pytest.mark.req("NOD-168", "NOD-169", "NOD-170", "NOD-171", "NOD-172", "NOD-413", "NOD-161", "NOD-430")
def test_a_folder_outlives_its_machine_and_nothing_else_does(own: Own) -> None:
    own.stands("Running")
    own.run(
        "mkdir -p node_modules/x empty && echo kept > notes && ln -s /usr/bin/python3 node_modules/x/python"
    )
    own.run("umask 077; echo '#!/bin/sh' > run && chmod 755 run && touch -d 2020-01-01 notes; mkfifo pipe")
    own.run("echo lost > /tmp/elsewhere; (sleep 3600 > /dev/null 2>&1 &)")
    own.tell("stop")
    saved = own.stands("Paused")["lastSave"]
    assert (saved["state"], saved["leftOut"]) == ("Saved", 1)
    own.tell("start")
    assert own.stands("Running")["restoredFrom"] == saved["at"]
    found = own.run(
        "cat notes; readlink node_modules/x/python; stat -c '%a %Y' run notes; ls -d empty; ls /tmp; ps -e"
    )
    assert found.splitlines()[:2] == ["kept", "/usr/bin/python3"]
    assert "755 " in found
    assert "644 1577836800" in found
    assert "empty" in found
    assert "elsewhere" not in found
    assert "sleep" not in found

    own.run("echo changed > notes")
    room(own.cloud, own.status["machine"]).kill()
    lost = own.stands("Paused")
    assert lost["reason"] == "SandboxLost"
    assert saved["at"] in lost["message"]
    own.tell("start")
    assert own.stands("Running")["restoredFrom"] == saved["at"]
    assert own.run("cat notes") == "kept\n"
