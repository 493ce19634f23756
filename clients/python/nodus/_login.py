"""Login from Python (NODQ-98)."""

from __future__ import annotations

from typing import Any

from nodus._client import AsyncClient, Client
from nodus.errors import UnexpectedAnswerError


class Login:
    """A login: a key that works until ``expires_at``, for clients of either kind. The key is never shown."""

    def __init__(self, server: str, token: str, org: str | None, expires_at: str, identity: str) -> None:
        self.server = server
        self.token = token
        self.org = org
        self.expires_at = expires_at
        self.identity = identity

    def client(self, *, project: str | None = None) -> Client:
        """A client with this key; ``project`` as of ``Client``."""
        return Client(server=self.server, token=self.token, org=self.org, project=project)

    def async_client(self, *, project: str | None = None) -> AsyncClient:
        """As of ``client``, for those who await."""
        return AsyncClient(server=self.server, token=self.token, org=self.org, project=project)

    def __repr__(self) -> str:
        return f"Login({self.identity!r}, server={self.server!r}, expires_at={self.expires_at!r})"


def login_aws(
    *,
    session: Any = None,
    server: str | None = None,
    org: str | None = None,
    context: str | None = None,
    ttl: str | None = None,
) -> Login:
    """Sign in as who AWS says that you are, without an API key (NODQ-98); needs botocore.

    A request of AWS STS is signed on this machine and given to the server; no AWS credential leaves it. Nothing is
    stored: `nodus login --aws` does that.

        login = nodus.login_aws(session=boto3.Session(profile_name="work"))
        with login.client(project="web") as client:
            print(next(client.agentruns.list()).metadata.name)

    Args:
        session: a session of boto3 or of botocore; ``None``: one that searches as usual.
        server: address below which ``/apis`` lies; ``None``: ``NODUS_SERVER``, or that of the context.
        org: the organization; ``None``: the configured one, or the only one that the identity is mapped to.
        context: name of a context of the configuration file, instead of its current one.
        ttl: how long the login works, ``"15m"`` to ``"12h"`` (1 hour when left out).

    Raises:
        ConfigError: no server, no AWS credentials, or no botocore to sign with.
        UnauthorizedError: AWS does not accept the signature.
        ForbiddenError: the identity is mapped to no such organization.
        OutcomeUnknownError: no answer came: call again, which signs anew.
    """
    from nodus import _aws, _config  # noqa: PLC0415 (only those who log in pay for it)

    address, organization = _config.resolve_place(server=server, org=org, context=context)
    status = _aws.log_in(address, session=session, org=organization, ttl=ttl)
    token, expires, identity = (status.get(name) for name in ("token", "expiresAt", "identity"))
    if not isinstance(token, str) or not token:
        raise UnexpectedAnswerError("the answer to the login holds no token; is the server's address right?")
    return Login(address, token, organization, str(expires), str(identity))
