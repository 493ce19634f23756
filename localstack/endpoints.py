"""How to reach the local cloud, for whoever runs beside it: the CLI's tests, the demo, the ECS agent.

Standard library only, so that any environment can import it.
"""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from localstack.paths import State

REGION = "us-east-1"


class NoCloudError(Exception):
    """There is no local cloud in this state folder, or it was not deployed to yet."""


@dataclass(frozen=True)
class Cloud:
    """The contents of `cloud.json` (protocols §8).

    Args:
        endpoint: base address of every AWS service, for AWS_ENDPOINT_URL.
        access_key_id: id of the only credentials that the cloud takes from outside.
        secret_access_key: their secret.
        region: of all resources.
        outputs: stack name -> output name -> value; empty before the first deploy.
        pids: process name -> pid, as of the last `up`.
        tls_endpoint: where the REST API alone is served over TLS, for kubectl.
    """

    endpoint: str
    access_key_id: str
    secret_access_key: str
    region: str = REGION
    outputs: dict[str, dict[str, str]] = field(default_factory=dict)
    pids: dict[str, int] = field(default_factory=dict)
    tls_endpoint: str = ""

    @classmethod
    def load(cls, state: State | None = None) -> Cloud:
        """Read `cloud.json` of `state` (default: the current one).

        Raises:
            NoCloudError: there is none, or it cannot be read.
        """
        path = (state or State.current()).cloud_file
        try:
            data = json.loads(path.read_text())
            return cls(
                endpoint=data["endpoint"],
                access_key_id=data["accessKeyId"],
                secret_access_key=data["secretAccessKey"],
                region=data["region"],
                outputs=data["outputs"],
                pids=data["pids"],
                tls_endpoint=data.get("tlsEndpoint", ""),
            )
        except FileNotFoundError as error:
            raise NoCloudError(f"{path} does not exist: start the local cloud with `make up`") from error
        except (ValueError, KeyError) as error:
            raise NoCloudError(f"{path} cannot be read ({error!r}): `make clean` and `make up`") from error

    def save(self, state: State) -> None:
        """Write `cloud.json` atomically, readable by its owner only: it holds the credentials."""
        values = asdict(self)
        data = {_camel(name): value for name, value in values.items()}
        write_private(state.cloud_file, json.dumps(data, indent=2) + "\n")

    def with_outputs(self, outputs: dict[str, dict[str, str]]) -> Cloud:
        return replace(self, outputs=outputs)

    def output(self, name: str) -> str:
        """The one output called `name`, in whichever stack it is.

        Raises:
            NoCloudError: no stack has such an output.
        """
        for values in self.outputs.values():
            if name in values:
                return values[name]
        raise NoCloudError(f"no deployed stack has an output {name!r}; deploy again with `make up`")

    @property
    def api_url(self) -> str:
        """The address below which the REST API's `/apis/…` lies: the client configuration's `server`."""
        return f"{self.endpoint}/_aws/execute-api/{self.output('HttpApiId')}"

    def environment(self) -> dict[str, str]:
        """Variables that point the AWS SDKs, the AWS CLI and CDK to this cloud and to nothing else."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ENDPOINT_URL_S3": self.endpoint,
            "AWS_ACCESS_KEY_ID": self.access_key_id,
            "AWS_SECRET_ACCESS_KEY": self.secret_access_key,
            "AWS_REGION": self.region,
            "AWS_DEFAULT_REGION": self.region,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def client_arguments(self) -> dict[str, Any]:
        """Keyword arguments for `boto3.client(service, **…)`."""
        return {
            "endpoint_url": self.endpoint,
            "aws_access_key_id": self.access_key_id,
            "aws_secret_access_key": self.secret_access_key,
            "region_name": self.region,
        }


def write_private(path: Path, text: str) -> None:
    """Replace `path` by `text` in one step, mode 0600."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)
