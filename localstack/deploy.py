"""Deploy the unmodified app to the local cloud with the ordinary CDK command line."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import boto3

from localstack import supervise
from localstack.bootstrap import usable_home
from localstack.endpoints import Cloud
from localstack.paths import APP_BIN, ROOT, TOOLS_BIN, State
from localstack.processes import ProcessError, tail

# Everything that a deploy depends on, below the checkout.
SOURCES = (
    "app.py",
    "cdk.json",
    "infra",
    "layers",
    "functions",
    "statemachines",
    "uv.lock",
    "package-lock.json",
)
SETTINGS = ("--context", "sandboxImages=machine")
"""What this machine cannot have: containers. Sandboxes have its own tools, and say so (docs/operations.md)."""

CHOICES = {"NODUS_WARM_SANDBOXES": ("warmSandboxes", "0"), "NODUS_ARCHIVE_HOSTS": ("archiveHosts", "*")}
"""Variables of `make up`, each with the setting that it chooses, and what that is where the variable is left out. The one
user of this cloud, who is its operator, has nothing against archives of all public hosts."""

LEFT_OUT = {"__pycache__", "build", "node_modules", ".pytest_cache", ".ruff_cache"}
CDK = ROOT / "node_modules" / "aws-cdk" / "bin" / "cdk"


def deploy(state: State, cloud: Cloud) -> Cloud:
    """Deploy unless what is deployed is what the checkout says; answers the cloud with its outputs.

    Raises:
        ProcessError: a step failed; the message ends with its last lines.
    """
    wanted = fingerprint(cloud)
    stamp = state.deployment / "fingerprint"
    if stamp.is_file() and stamp.read_text() == wanted and cloud.outputs:
        return cloud
    begun = time.monotonic()
    stamp.unlink(missing_ok=True)  # a deploy that is cut off must not look finished
    build_layers(state)
    bootstrap(state, cloud)
    outputs = run_cdk(state, cloud)
    cloud = cloud.with_outputs(outputs)
    cloud.save(state)
    supervise.save(state)  # CloudFormation's resources live in the emulator's memory until then
    stamp.write_text(wanted)
    print(f"deployed {', '.join(outputs)} in {time.monotonic() - begun:.0f} s", flush=True)
    return cloud


def sweep(cloud: Cloud) -> None:
    """Have the sweeper look now: what a stop has left due need not wait for its minute."""
    client = boto3.client("lambda", **cloud.client_arguments())
    client.invoke(FunctionName=cloud.output("SweeperFunctionName"), InvocationType="Event")


def build_layers(state: State) -> None:
    """The third-party layer, for the Python that runs functions here; does nothing when it is there."""
    step(state, "layers", [str(APP_BIN / "python"), str(ROOT / "layers" / "deps" / "build.py")], {})


def bootstrap(state: State, cloud: Cloud) -> None:
    """CDK's own stack, once for each state folder."""
    done = state.deployment / "bootstrapped"
    if not done.exists():
        step(
            state,
            "bootstrap",
            cdk(state, "bootstrap", f"aws://000000000000/{cloud.region}"),
            cloud.environment(),
            state.deployment,  # where no cdk.json names an app: it would be synthesized for nothing
        )
        supervise.save(state)  # else a kill now would undo the bootstrap and leave the note of it
        done.touch()


def run_cdk(state: State, cloud: Cloud) -> dict[str, dict[str, str]]:
    """Deploy all stacks; their outputs."""
    outputs = state.deployment / "outputs.json"
    outputs.unlink(missing_ok=True)
    words = cdk(state, "deploy", "--all", "--require-approval", "never", "--concurrency", "2", *SETTINGS)
    words += ["--context", f"gitFolder={state.repositories}", *chosen()]
    step(state, "deploy", [*words, "--outputs-file", str(outputs)], cloud.environment())
    return json.loads(outputs.read_text()) if outputs.exists() else {}


def cdk(state: State, *words: str) -> list[str]:
    """The command line of CDK. Its working folder is the state's, so that two clouds can deploy at once."""
    return [str(APP_BIN / "node"), str(CDK), *words, "--output", str(state.deployment / "cdk.out")]


def step(state: State, name: str, command: list[str], extra: Mapping[str, str], folder: Path = ROOT) -> None:
    """Run one step of a deploy in `folder`, its output to a log.

    Raises:
        ProcessError: it failed.
    """
    print(f"deploy: {name} …", flush=True)
    log = state.logs / f"deploy-{name}.log"
    with log.open("wb") as output:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**environment(state), **extra},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            umask=0o022,  # code and layers keep these modes wherever they are deployed
            check=False,
        )
    if done.returncode != 0:
        raise ProcessError(f"deploy: {name} failed with exit code {done.returncode}:\n{tail(log, 30)}")


def environment(state: State) -> dict[str, str]:
    """For CDK and what it starts: Python and Node of the checkout first, no AWS settings of the caller."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CDK_"))}
    path = os.pathsep.join([str(APP_BIN), str(TOOLS_BIN), kept.get("PATH", "/usr/bin:/bin")])
    return {
        **kept,
        "HOME": usable_home(kept, state.folder / "home"),
        "PATH": path,
        "CI": "true",
        "CDK_DISABLE_VERSION_CHECK": "1",
        "CDK_DISABLE_CLI_TELEMETRY": "true",
    }


def fingerprint(cloud: Cloud) -> str:
    """A digest of everything that the deployed stacks depend on."""
    asked = f"{sys.version_info[:2]}\0{cloud.access_key_id}\0{SETTINGS}\0{chosen()}"
    digest = hashlib.sha256(asked.encode())
    for path in sources():
        digest.update(f"{path.relative_to(ROOT)}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def choice(word: str) -> str:
    """What a variable of `CHOICES` chooses."""
    return os.environ.get(word) or CHOICES[word][1]


def chosen() -> list[str]:
    """The settings that the environment chooses, as words of CDK."""
    return [part for word, (name, _) in CHOICES.items() for part in ("--context", f"{name}={choice(word)}")]


def sources() -> Iterator[Path]:
    """The files below SOURCES, in a fixed order, without what tools leave behind."""
    for name in SOURCES:
        top = ROOT / name
        if top.is_file():
            yield top
            continue
        for folder, folders, files in os.walk(top):
            folders[:] = sorted(entry for entry in folders if entry not in LEFT_OUT)
            yield from (Path(folder) / file for file in sorted(files) if not file.endswith(".pyc"))
