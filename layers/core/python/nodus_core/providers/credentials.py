"""The keys of the endpoints, as the secret `nodus/providers` holds them (docs/protocols.md §4)."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address

OWN_KEYS, GITHUB_APP = "byok", "githubApp"
"""The entries of the secret that are no endpoints."""


class BadCredentials(Exception):
    """The secret cannot be used. The message names the endpoint and the field, never a value."""


@dataclass(frozen=True)
class Credential:
    """How one endpoint is reached. `base_url` None is the SDK's own; the key never shows in a repr."""

    api_key: str = field(repr=False)
    base_url: str | None = None
    scripted: bool = False


@dataclass(frozen=True)
class OwnKeyNetwork:
    """What the operator allows calls with users' own keys, and reads of repositories, beside public addresses.

    `private_hosts`: host name → address; `certificates`: PEM texts that are trusted for them, too.
    """

    private_hosts: Mapping[str, str] = field(default_factory=dict[str, str])
    certificates: str | None = None


class Credentials(Mapping[str, Credential]):
    """Endpoint name → credential. Its repr names the endpoints only. `github_app` is the private key of the operator's
    GitHub App, in PEM."""

    def __init__(
        self,
        credentials: Mapping[str, Credential],
        own_keys: OwnKeyNetwork | None = None,
        github_app: str | None = None,
    ) -> None:
        self._credentials = dict(credentials)
        self.own_keys = own_keys or OwnKeyNetwork()
        self.github_app = github_app

    @classmethod
    def from_json(cls, text: str) -> "Credentials":
        """Reads `{"anthropic": {"apiKey", "baseURL"?, "scripted"?}, …, "byok"?: {"privateHosts"?, "certificates"?},
        "githubApp"?: {"privateKey"}}`.

        Raises: BadCredentials.
        """
        try:
            data = json.loads(text)
        except ValueError:
            # The parser's message and chain would quote the secret's text.
            raise BadCredentials(
                "the providers' secret is not JSON; write it as docs/protocols.md §4 says"
            ) from None
        if not isinstance(data, dict):
            raise BadCredentials("the providers' secret must be a JSON object: endpoint name → credential")
        own_keys = _own_key_network(data.pop(OWN_KEYS, {}))
        github_app = _private_key(data.pop(GITHUB_APP, None))
        return cls({name: _credential(name, entry) for name, entry in data.items()}, own_keys, github_app)

    @property
    def scripted(self) -> frozenset[str]:
        """Names of the endpoints that the scripted model server answers for."""
        return frozenset(name for name, credential in self._credentials.items() if credential.scripted)

    def __getitem__(self, endpoint: str) -> Credential:
        return self._credentials[endpoint]

    def __iter__(self) -> Iterator[str]:
        return iter(self._credentials)

    def __len__(self) -> int:
        return len(self._credentials)

    def __repr__(self) -> str:
        return f"Credentials({', '.join(sorted(self._credentials))})"


def _credential(name: str, entry: object) -> Credential:
    if not isinstance(entry, dict):
        raise BadCredentials(f"providers' secret, {name}: must be an object with apiKey")
    key, base_url, scripted = entry.get("apiKey"), entry.get("baseURL"), entry.get("scripted", False)
    if (
        not isinstance(key, str)
        or not key.strip()
        or not (key.strip().isascii() and key.strip().isprintable())
    ):
        raise BadCredentials(
            f"providers' secret, {name}.apiKey: must be a text of ASCII characters, not empty"
        )
    if base_url is not None and not (
        isinstance(base_url, str) and base_url.startswith(("http://", "https://"))
    ):
        raise BadCredentials(f"providers' secret, {name}.baseURL: must be an http or https address")
    if not isinstance(scripted, bool):
        raise BadCredentials(f"providers' secret, {name}.scripted: must be true or false")
    return Credential(key.strip(), base_url, scripted)


def _own_key_network(entry: object) -> OwnKeyNetwork:
    if not isinstance(entry, dict):
        raise BadCredentials(f"providers' secret, {OWN_KEYS}: must be an object")
    hosts, certificates = entry.get("privateHosts", {}), entry.get("certificates")
    if not isinstance(hosts, dict) or not all(
        isinstance(name, str) and isinstance(address, str) and _is_address(address)
        for name, address in hosts.items()
    ):
        raise BadCredentials(
            f"providers' secret, {OWN_KEYS}.privateHosts: must be host names and their addresses"
        )
    if certificates is not None and not isinstance(certificates, str):
        raise BadCredentials(f"providers' secret, {OWN_KEYS}.certificates: must be a text in PEM")
    return OwnKeyNetwork(hosts, certificates)


def _private_key(entry: object) -> str | None:
    if entry is None:
        return None
    key = entry.get("privateKey") if isinstance(entry, dict) else None
    if not isinstance(key, str) or not key.strip():
        raise BadCredentials(
            f"providers' secret, {GITHUB_APP}.privateKey: must be the app's private key in PEM"
        )
    return key


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
