"""Synthesizes the app the way a fresh machine does: another process, no AWS words in its environment, no network."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
# Whoever needs the network in spite of all gets a refused connection at once.
NOWHERE = "http://127.0.0.1:9"
UNPACKED_CDK = str(Path.home() / ".cache" / "aws" / "jsii" / "package-cache")
SYNTHESIS_TIMEOUT_S = 540
PROGRAM = """
import sys
from pathlib import Path
from aws_cdk import App, Validations
from cdk_nag import AwsSolutionsChecks
from infra.app import build_app
app = App()
build_app(app, deps=Path(sys.argv[1]))
Validations.of(app).add_plugins(AwsSolutionsChecks(app))
app.synth()
"""

Resource = Mapping[str, Any]


@dataclass(frozen=True)
class Assembly:
    """What synthesis made of the app.

    Attributes:
        folder: the cloud assembly.
        prefix: what the stacks' names begin with.
        answer: what the process said, on both of its outputs.
        succeeded: whether it ended well, the security rules included.
    """

    folder: Path
    prefix: str
    answer: str
    succeeded: bool

    @cached_property
    def state(self) -> "Template":
        """The stack of what outlives deployments."""
        return self._template("state")

    @cached_property
    def service(self) -> "Template":
        """The stack of everything else."""
        return self._template("service")

    @cached_property
    def images(self) -> "Template":
        """The stack that builds the sandbox image; only where the settings ask for it."""
        return self._template("images")

    @property
    def templates(self) -> list["Template"]:
        """The stacks that are always there."""
        return [self.state, self.service]

    def _template(self, name: str) -> "Template":
        path = self.folder / f"{self.prefix}-{name}.template.json"
        assert path.is_file(), self.answer
        return Template(path, json.loads(path.read_text()))

    def asset_of(self, function: Resource) -> Path:
        """The folder that a function's code was taken from."""
        return self.folder / f"asset.{function['Properties']['Code']['S3Key'].removesuffix('.zip')}"


@dataclass(frozen=True)
class Template:
    """One synthesized stack."""

    path: Path
    body: Mapping[str, Any]

    def of_type(self, kind: str) -> dict[str, Resource]:
        """Resources of one type by logical id, for example of `AWS::IAM::Role`."""
        return {key: each for key, each in self.body["Resources"].items() if each["Type"] == kind}

    def one(self, kind: str) -> dict[str, Any]:
        """The properties of the only resource of a type."""
        (found,) = self.of_type(kind).values()
        return found["Properties"]

    def function(self, name: str) -> Resource:
        """The function that runs `functions/NAME`."""
        handler = f"functions.{name}.handler.handler"
        (found,) = (
            each
            for each in self.of_type("AWS::Lambda::Function").values()
            if each["Properties"]["Handler"] == handler
        )
        return found

    def statements(self, role: str) -> list[dict[str, Any]]:
        """Everything that the inline policies of a role, by its logical id, allow or deny."""
        attached = [
            policy["Properties"]["PolicyDocument"]["Statement"]
            for policy in self.of_type("AWS::IAM::Policy").values()
            if {"Ref": role} in policy["Properties"]["Roles"]
        ]
        return [statement for document in attached for statement in document]


def synthesize(folder: Path, context: Mapping[str, str], prefix: str) -> Assembly:
    """Synthesizes with the given settings.

    Args:
        folder: an empty folder for the assembly and a stand-in of the third-party layer.
        context: settings as on the command line of `cdk`.
        prefix: what the stacks' names will begin with.
    """
    deps = folder / "deps" / "python"
    deps.mkdir(parents=True)
    (deps / "stand_in.py").write_text("")
    settings = {**json.loads((ROOT / "cdk.json").read_text())["context"], **context}
    binaries = Path(sys.executable).parent
    environment = {
        "PATH": os.pathsep.join((str(binaries), "/usr/bin", "/bin")),
        "HOME": str(folder),
        "CDK_OUTDIR": str(folder / "out"),
        "CDK_CONTEXT_JSON": json.dumps(settings),
        # The home is empty, but not the place where the CDK was unpacked: that alone takes half a minute.
        "JSII_RUNTIME_PACKAGE_CACHE_ROOT": os.environ.get("JSII_RUNTIME_PACKAGE_CACHE_ROOT", UNPACKED_CDK),
        "HTTP_PROXY": NOWHERE,
        "HTTPS_PROXY": NOWHERE,
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(deps.parent)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=SYNTHESIS_TIMEOUT_S,
    )
    return Assembly(folder / "out", prefix, done.stdout + done.stderr, done.returncode == 0)


def as_list(value: Any) -> list[Any]:
    """CloudFormation writes a list of one as the one."""
    return value if isinstance(value, list) else [value]
