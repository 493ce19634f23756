"""Addresses of the two APIs, from their ids: on AWS, and below AWS_ENDPOINT_URL (docs/protocols.md §5)."""

from collections.abc import Mapping
from dataclasses import dataclass

from nodus_core.aws.clients import dns_suffix

LINK_PATH = "/link/v1"
HTTP_STAGE = "$default"
"""The HTTP API's one stage, which stands in no address on AWS."""


@dataclass(frozen=True)
class Endpoints:
    """Where the APIs answer. `below` is the address of an emulator, or None for AWS itself."""

    http_api: str
    link_api: str
    link_stage: str
    region: str
    below: str | None = None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], region: str) -> "Endpoints":
        """From the variables of docs/protocols.md §5. Raises KeyError for one that is missing."""
        return cls(
            environment["NODUS_HTTP_API_ID"],
            environment["NODUS_LINK_API_ID"],
            environment["NODUS_LINK_STAGE"],
            region,
            environment.get("AWS_ENDPOINT_URL") or None,
        )

    @property
    def http(self) -> str:
        """Address of the HTTP API, without a slash at its end."""
        if self.below is not None:
            return self._below(self.http_api, HTTP_STAGE)
        return f"https://{self._host(self.http_api)}"

    @property
    def link_http(self) -> str:
        """NODUS_LINK_HTTP of a sandbox."""
        return self.http + LINK_PATH

    @property
    def link_ws(self) -> str:
        """NODUS_LINK_WS of a sandbox."""
        scheme, _, rest = self.connections.partition("://")
        return f"{'wss' if scheme == 'https' else 'ws'}://{rest}"

    @property
    def connections(self) -> str:
        """Management address of the WebSocket API, for the bell's client."""
        if self.below is not None:
            return self._below(self.link_api, self.link_stage)
        return f"https://{self._host(self.link_api)}/{self.link_stage}"

    def _host(self, api: str) -> str:
        return f"{api}.execute-api.{self.region}.{dns_suffix(self.region)}"

    def _below(self, api: str, stage: str) -> str:
        return f"{str(self.below).rstrip('/')}/_aws/execute-api/{api}/{stage}"


def server_addresses(environment: Mapping[str, str], region: str) -> list[str]:
    """Where clients reach the HTTP API: at AWS's own name, below an emulator, and at the operator's names."""
    below = environment.get("AWS_ENDPOINT_URL")
    named = [f"https://{name}" for name in environment["NODUS_SERVER_NAMES"].split(",") if name]
    own = f"https://{environment['NODUS_HTTP_API_ID']}.execute-api.{region}.{dns_suffix(region)}"
    return [own, *named, *([below] if below else [])]
