"""Task definitions for images that the deployment's own does not name: each is registered once, by image (NODQ-82).

The runtime with the daemon comes into a foreign image by an init container, which copies it to a volume; the image
that has it in place, and its versions, are started as they are.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from nodus_core.aws.failures import code_of, translated
from nodus_core.kernel.errors import TerminalError

RUNTIME = "runtime"
"""Name of the init container and of the volume that it fills."""

HOME = "home"
RUNTIME_AT = "/opt/sandboxd"
HOME_AT = "/home/agent"
ENTRY_POINT = [f"{RUNTIME_AT}/python/bin/python3", "-I", "-S", f"{RUNTIME_AT}/site/sandboxd/__main__.py"]
"""How the daemon is started wherever the runtime is (sandbox_images/agent-tools/README.md)."""

ACCOUNT = {"HOME": HOME_AT, "USER": "agent", "LOGNAME": "agent", "LANG": "C.UTF-8"}
"""Of the commands' user, whom a foreign image does not know."""

_KEPT = ("networkMode", "requiresCompatibilities", "cpu", "memory", "executionRoleArn", "runtimePlatform")


class TaskDefinitions:
    """The definitions of one deployment. `base` is the family of its own one, whose container is `container`;
    `runtime` is the image of the init container, None where foreign images cannot be run."""

    def __init__(self, client: Any, base: str, container: str, runtime: str | None) -> None:
        self._client = client
        self._base = base
        self._container = container
        self._runtime = runtime

    def of_image(self, image: str | None, gpus: int = 0) -> str:
        """The family to run for an image by its digest, None: the deployment's own; with so many GPUs.

        A family is named by the deployment's definition, the image and the GPUs, so that each deployment registers
        anew, and two workers at once register the same twice.
        """
        if image is None and not gpus:
            return self._base
        with translated(f"registering the task definition of image {image}"):
            base = self._client.describe_task_definition(taskDefinition=self._base)["taskDefinition"]
            marks = f"{base['taskDefinitionArn']}\n{self._runtime}\n{image}" + (f"\n{gpus}" if gpus else "")
            family = f"{base['family']}-{hashlib.sha256(marks.encode()).hexdigest()[:24]}"
            if not self._is_there(family):
                made = self._definition(base, family, image)
                self._client.register_task_definition(**(self._on_gpus(made, gpus) if gpus else made))
        return family

    def _is_there(self, family: str) -> bool:
        try:
            found = self._client.describe_task_definition(taskDefinition=family)["taskDefinition"]
        except ClientError as error:
            if code_of(error) != "ClientException":  # what ECS says of a family that it does not know
                raise
            return False
        return found.get("status") == "ACTIVE"

    def _on_gpus(self, made: Mapping[str, Any], gpus: int) -> dict[str, Any]:
        """The definition for a machine of EC2, so many of whose GPUs its sandbox has for itself."""
        needs = {"resourceRequirements": [{"type": "GPU", "value": str(gpus)}]}
        containers = [
            {**each, **needs} if each["name"] == self._container else each
            for each in made["containerDefinitions"]
        ]
        return {**made, "requiresCompatibilities": ["EC2"], "containerDefinitions": containers}

    def _definition(self, base: Mapping[str, Any], family: str, image: str | None) -> dict[str, Any]:
        own = next(each for each in base["containerDefinitions"] if each["name"] == self._container)
        kept = {name: base[name] for name in _KEPT if name in base}
        image = image or str(own["image"])
        if _repository(own["image"]) == _repository(image):
            return {**kept, "family": family, "containerDefinitions": [{**own, "image": image}]}
        if self._runtime is None:
            raise TerminalError(f"image {image} cannot be run: this deployment has no image of the runtime")
        return {
            **kept,
            "family": family,
            "volumes": [{"name": RUNTIME}, {"name": HOME}],
            "containerDefinitions": [self._init(own), _foreign(own, image)],
        }

    def _init(self, own: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "name": RUNTIME,
            "image": self._runtime,
            "essential": False,
            "mountPoints": [
                {"sourceVolume": RUNTIME, "containerPath": "/nodus", "readOnly": False},
                {"sourceVolume": HOME, "containerPath": "/nodus-home", "readOnly": False},
            ],
            **({"logConfiguration": own["logConfiguration"]} if "logConfiguration" in own else {}),
        }


def _foreign(own: Mapping[str, Any], image: str) -> dict[str, Any]:
    """The sandbox's container in an image that knows nothing of Nodus: what it says of its own start is not asked."""
    told = {each["name"]: each["value"] for each in own.get("environment", [])}
    return {
        **own,
        "image": image,
        "entryPoint": ENTRY_POINT,
        "command": [],
        "user": "0:0",
        "workingDirectory": "/",
        "environment": [{"name": name, "value": value} for name, value in {**told, **ACCOUNT}.items()],
        "dependsOn": [{"containerName": RUNTIME, "condition": "SUCCESS"}],
        "mountPoints": [
            {"sourceVolume": RUNTIME, "containerPath": RUNTIME_AT, "readOnly": True},
            {"sourceVolume": HOME, "containerPath": HOME_AT, "readOnly": False},
        ],
    }


def _repository(image: str) -> str:
    """An image's reference without its tag or digest."""
    named = image.partition("@")[0]
    last = named.rpartition("/")[2]
    return named.removesuffix(f":{last.partition(':')[2]}") if ":" in last else named
