"""Public registries of images: which digest a tag stands for (OCI distribution, `/v2/`).

Registries are named by users, and name another host themselves for their tokens: both are reached at public
addresses only, without redirects, in bounded time (FLD-13).
"""

import hashlib
import json
import re
from collections.abc import Callable
from typing import Any

from nodus_core.kernel.errors import RetryableError, TerminalError
from nodus_core.providers.posting import Answer, ConnectionFailure, NeverSendable, Timeouts
from nodus_core.sandboxes.references import DOCKER_HUB, is_digest

TIMES = Timeouts(connect=3, reply=6)
"""Seconds for one request; a digest takes three at most, and a caller of the API waits for them."""

_MANIFESTS = ", ".join(
    (
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    )
)
_HUB = "registry-1.docker.io"
_WORDS = re.compile(r'([a-z]+)="([^"]*)"')
LARGEST_MANIFEST = 4 * 1024 * 1024
"""Bytes of an answer that are read: more is no manifest, and no token."""

Fetch = Callable[[str, dict[str, str]], Answer]
"""Gets an https address with headers. Raises ConnectionFailure, with cause `TooLarge` for an endless answer."""


class TooLarge(Exception):
    """The answer was longer than `LARGEST_MANIFEST`; the rest of it was not read."""


class PublicRegistries:
    """`ImageRegistry` over whichever host is named, without credentials."""

    def __init__(self, fetch: Fetch | None = None) -> None:
        self._fetch = fetch or _fetch

    def digest(self, repository: str, version: str, host: str) -> str:
        server = _HUB if host == DOCKER_HUB else host
        image = f"{host}/{repository}:{version}"
        address, headers = f"https://{server}/v2/{repository}/manifests/{version}", {"Accept": _MANIFESTS}
        answer = self._get(address, headers, host)
        if answer.status == 401:
            token = self._token(answer, repository, host)
            answer = self._get(address, {**headers, "Authorization": f"Bearer {token}"}, host)
        return _digest(answer, image, host)

    def _token(self, refused: Answer, repository: str, host: str) -> str:
        """A token for reading one repository, as the registry's refusal says where to get it."""
        said = refused.headers.get("www-authenticate", "")
        words = dict(_WORDS.findall(said)) if said.lower().startswith("bearer ") else {}
        realm = words.get("realm", "")
        if not realm.startswith("https://"):
            raise TerminalError(f"registry {host} asks for credentials; private images are not read yet")
        asked = {"service": words.get("service", ""), "scope": f"repository:{repository}:pull"}
        answer = self._get(f"{realm}?{_query(asked)}", {}, host)
        try:
            body = json.loads(answer.body) if answer.status == 200 else {}
            token = body.get("token") or body.get("access_token")
        except (ValueError, RecursionError, AttributeError):
            token = None
        # It becomes a header: what no header can hold would be an error of ours.
        if not isinstance(token, str) or not (token.isascii() and token.isprintable()):
            raise _private(host)
        return token

    def _get(self, address: str, headers: dict[str, str], host: str) -> Answer:
        try:
            return self._fetch(address, headers)
        except ConnectionFailure as failure:
            if isinstance(failure.cause, NeverSendable):
                message = (
                    f"registry {host} cannot be asked: its address is not public, or it cannot prove its name"
                )
                raise TerminalError(message) from failure
            if isinstance(failure.cause, TooLarge):
                raise TerminalError(f"registry {host} answers with more than a manifest can be") from failure
            raise RetryableError(f"registry {host} does not answer", 5) from failure


def _digest(answer: Answer, image: str, host: str) -> str:
    if answer.status == 404:
        raise TerminalError(f"registry {host} has no image {image}")
    if answer.status in (401, 403):
        raise _private(host)
    if answer.status == 429 or answer.status >= 500:
        raise RetryableError(f"registry {host} answers {answer.status}", 10)
    if answer.status != 200:
        raise TerminalError(f"registry {host} gives no manifest of image {image} (HTTP {answer.status})")
    # The digest is that of the bytes; what the registry says of them is checked when the image is pulled, and a
    # wrong word would only make the pull fail then.
    found = f"sha256:{hashlib.sha256(answer.body).hexdigest()}"
    said = answer.headers.get("docker-content-digest", found)
    if not is_digest(said) or said != found:
        raise TerminalError(f"registry {host} gives another manifest of image {image} than it says")
    return found


def _private(host: str) -> TerminalError:
    return TerminalError(
        f"registry {host} gives this image to nobody without credentials, and private images are not read yet: "
        "name a public one, or an EnvironmentImage of the project"
    )


def _query(words: dict[str, str]) -> str:
    from urllib.parse import urlencode  # noqa: PLC0415 - like the client below: only when a registry is asked

    return urlencode(words)


def _fetch(address: str, headers: dict[str, str]) -> Answer:
    from nodus_core.providers.public_network import PublicTransport  # noqa: PLC0415 - as in `fetched`

    return fetched(address, headers, PublicTransport())


def fetched(address: str, headers: dict[str, str], transport: Any) -> Answer:
    """What stands at an address, as `Fetch` says, over one of httpx2's transports."""
    # Imported here: the HTTP client takes a fifth of a second, and most calls of the API ask no registry.
    import httpx2  # noqa: PLC0415

    from nodus_core.providers.http import UNSENT, AnswerTooLarge, http_client, within  # noqa: PLC0415

    def get() -> Answer:
        with http_client(httpx2.Client, None, TIMES, transport, largest=LARGEST_MANIFEST) as client:
            try:
                response: Any = client.get(address, headers=headers)
            except AnswerTooLarge as error:
                raise ConnectionFailure(TooLarge(str(error)), sent=True) from error
            except httpx2.InvalidURL as error:
                raise ConnectionFailure(NeverSendable(f"its address is none: {error}"), sent=False) from error
            except httpx2.HTTPError as error:
                raise ConnectionFailure(error, sent=not isinstance(error, UNSENT)) from error
            return Answer(response.status_code, response.headers, response.content)

    return within(TIMES.reply, get)
