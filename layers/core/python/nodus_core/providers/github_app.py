"""Tokens of an installation of the operator's GitHub App: for one repository, to read its files, for an hour.

Imports jwt and cryptography: import this module only when such a token is needed.
"""

import json
import time
from dataclasses import dataclass, field
from http import HTTPStatus

import httpx2
import jwt

from nodus_core.conversations.sources import SourceRefused, SourceUnavailable
from nodus_core.providers.posting import NeverSendable
from nodus_core.providers.source_hosts import judge

_SKEW_S = 60
_LIFE_S = 540
"""GitHub takes a signed word of at most ten minutes, and its clock may be behind ours."""


@dataclass(frozen=True)
class App:
    """The operator's app: its id, its private key in PEM, and the address of GitHub's API."""

    id: str
    private_key: str = field(repr=False)
    api: str


def installation_token(client: httpx2.Client, app: App, installation: int, repo: str) -> str:
    """A token that reads one repository. Raises `SourceRefused`, `SourceUnavailable`."""
    now = int(time.time())
    try:
        word = jwt.encode(
            {"iat": now - _SKEW_S, "exp": now + _LIFE_S, "iss": app.id}, app.private_key, algorithm="RS256"
        )
    except (ValueError, TypeError, jwt.PyJWTError):
        # The chain would quote the key.
        raise SourceRefused("the private key of the operator's GitHub App cannot be used") from None
    wanted = {"repositories": [repo.partition("/")[2]], "permissions": {"contents": "read"}}
    headers = {"Authorization": f"Bearer {word}", "Accept": "application/vnd.github+json"}
    try:
        answer = client.post(
            f"{app.api}/app/installations/{installation}/access_tokens", json=wanted, headers=headers
        )
    except NeverSendable as error:
        raise SourceRefused(f"GitHub cannot be asked for a token: {error}") from None
    except httpx2.HTTPError as error:
        raise SourceUnavailable(f"GitHub does not answer: {error}") from None
    if answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY:
        raise SourceRefused(f"installation {installation} of the operator's GitHub App may not read {repo}")
    if answer.status_code != HTTPStatus.CREATED:
        judge(answer, repo)
    try:
        return str(json.loads(answer.content)["token"])
    except (ValueError, KeyError, TypeError):
        raise SourceUnavailable("GitHub's answer to the request for a token cannot be read") from None
