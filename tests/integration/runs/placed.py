"""Hosts of tests that the operator has placed on this machine, and trusts."""

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager

import boto3

from localstack.testing import TestCloud
from tests.contract.tls_providers import Provider


@contextmanager
def placed(cloud: TestCloud, host: str, running: Provider) -> Iterator[None]:
    """Says in the providers' secret that a host is here; one test module at a time, for it is one secret."""
    client = boto3.client("secretsmanager", **cloud.cloud.client_arguments())
    secret = cloud.cloud.output("ProvidersSecretArn")
    with (cloud.state.run / "placed.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        before = client.get_secret_value(SecretId=secret)["SecretString"]
        here = {"privateHosts": {host: "127.0.0.1"}, "certificates": running.certificates}
        text = json.dumps({**json.loads(before), "byok": here})
        client.put_secret_value(SecretId=secret, SecretString=text)
        try:
            yield
        finally:
            client.put_secret_value(SecretId=secret, SecretString=before)
