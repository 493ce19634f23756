"""The configuration of kubectl for a server of ours."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from nodus._config import Settings
from nodus.cli import sources
from nodus.cli.failures import Failure

MOST_CA_BYTES = 1024 * 1024


def kubeconfig_of(name: str, settings: Settings, more: Mapping[str, Any]) -> dict[str, Any]:
    """A kubeconfig with one cluster, one user and one context, all called ``name``.

    Args:
        name: of the context.
        settings: address, key and project.
        more: what else the context says: ``tlsServer``, the same server under TLS, and ``caFile``, a file with
            the certificate of its authority (docs/protocols.md, section 7).

    Raises:
        Failure: the server is not known under TLS, without which kubectl sends no key; or the file cannot be read.
    """
    address = str(more.get("tlsServer") or settings.server)
    if not address.startswith("https://"):
        raise Failure(
            f"{settings.server} is not known under TLS, and kubectl sends a key under TLS only",
            reason="NoTLS",
        )
    cluster: dict[str, Any] = {"server": address}
    if more.get("caFile"):
        authority = sources.content(str(more["caFile"]), MOST_CA_BYTES)
        cluster["certificate-authority-data"] = base64.b64encode(authority).decode()
    context = {"cluster": name, "user": name, "namespace": settings.project}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": {"token": settings.token}}],
        "contexts": [{"name": name, "context": context}],
        "current-context": name,
    }
