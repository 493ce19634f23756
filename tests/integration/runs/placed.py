"""Hosts of tests that the operator has placed on this machine, and trusts."""

import fcntl
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import boto3

from localstack.testing import TestCloud
from tests.contract.tls_providers import Provider

Byok = dict[str, Any]


@contextmanager
def placed(cloud: TestCloud, host: str, running: Provider) -> Iterator[None]:
    """Says in the providers' secret that a host is here, beside those of other test modules."""

    def enter(byok: Byok) -> None:
        byok["privateHosts"][host] = "127.0.0.1"
        byok["certificates"] += running.certificates

    def leave(byok: Byok) -> None:
        del byok["privateHosts"][host]
        byok["certificates"] = byok["certificates"].replace(running.certificates, "")

    _change(cloud, enter)
    try:
        yield
    finally:
        _change(cloud, leave)


def _change(cloud: TestCloud, edit: Callable[[Byok], None]) -> None:
    client = boto3.client("secretsmanager", **cloud.cloud.client_arguments())
    secret = cloud.cloud.output("ProvidersSecretArn")
    with (cloud.state.run / "placed.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        held = json.loads(client.get_secret_value(SecretId=secret)["SecretString"])
        byok = held.pop("byok", {"privateHosts": {}, "certificates": ""})
        edit(byok)
        text = json.dumps({**held, **({"byok": byok} if byok["privateHosts"] else {})})
        client.put_secret_value(SecretId=secret, SecretString=text)
