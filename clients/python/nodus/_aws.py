"""Login with the AWS identity that is at hand (docs/protocols.md, section 1; NODQ-98)."""

from __future__ import annotations

import json
import os
from importlib import import_module
from typing import Any, cast
from urllib.parse import urlsplit

from nodus._transport import Reply
from nodus._wire import BlockingWire, Request
from nodus.errors import ConfigError, UnexpectedAnswerError

BODY = "Action=GetCallerIdentity&Version=2011-06-15"
FORM = "application/x-www-form-urlencoded; charset=utf-8"
WHOLE_WORLD = "us-east-1"
SECONDS = 25.0
MOST_BYTES = 1024 * 1024


def log_in(server: str, *, session: Any, org: str | None, ttl: str | None) -> dict[str, Any]:
    """Have a server make an API key for who AWS says that one is.

    Args:
        server: address below which ``/apis`` lies.
        session: a session of boto3 or of botocore; ``None``: one that searches as usual.
        org: the organization; ``None``: the only one that the identity is mapped to.
        ttl: how long the key works, such as ``1h``.

    Returns:
        ``status`` of the login: ``token``, ``expiresAt``, ``identity``, …

    Raises:
        ConfigError: there are no AWS credentials, or no botocore to sign with.
        ApiError: the server refused.
    """
    spec: dict[str, Any] = {"aws": signed(server, session or session_of(None))}
    spec |= {"organization": org} if org else {}
    spec |= {"ttl": ttl} if ttl else {}
    request = Request(
        "POST",
        f"{server}/apis/nodus.dev/v1/logins",
        {"Content-Type": "application/json", "Accept": "application/json"},
        json.dumps({"apiVersion": "nodus.dev/v1", "kind": "Login", "spec": spec}).encode(),
        SECONDS,
        MOST_BYTES,
    )
    wire = BlockingWire()
    try:
        # Once only: a signed request logs in once, so nothing is asked for again.
        reply = Reply(*wire.exchange(request))
    finally:
        wire.close()
    if reply.code >= 400:
        raise reply.error()
    status = reply.json().get("status")
    if not isinstance(status, dict):
        raise UnexpectedAnswerError("the answer to the login has no status; is the server's address right?")
    return cast("dict[str, Any]", status)


def session_of(profile: str | None) -> Any:
    """A botocore session with a profile of the AWS configuration; ``None``: the usual search.

    Raises:
        ConfigError: there is no botocore to sign with.
    """
    return _botocore("session").Session(profile=profile)


def signed(server: str, session: Any) -> dict[str, Any]:
    """A request of STS that says who one is, signed and not sent.

    Raises:
        ConfigError: there are no AWS credentials, or no botocore to sign with.
    """
    auth, awsrequest = _botocore("auth"), _botocore("awsrequest")
    try:
        credentials = session.get_credentials()
        # boto3's session has the region as an attribute, botocore's among its variables.
        region = (
            session.region_name if hasattr(session, "region_name") else session.get_config_variable("region")
        )
        frozen = credentials and credentials.get_frozen_credentials()
    except _botocore("exceptions").BotoCoreError as error:
        raise ConfigError(f"AWS: {error}", reason="NoAWSCredentials") from error
    if not frozen:
        raise ConfigError(
            "there are no AWS credentials: set a profile up, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
            reason="NoAWSCredentials",
        )
    url, region = _endpoint(region)
    headers = {"Content-Type": FORM, "X-Nodus-Server": _host(server)}
    request: Any = awsrequest.AWSRequest(method="POST", url=url, headers=headers, data=BODY)
    auth.SigV4Auth(frozen, "sts", region).add_auth(request)
    return {"method": "POST", "url": url, "headers": dict(request.headers.items()), "body": BODY}


def _botocore(name: str) -> Any:
    try:
        return import_module(f"botocore.{name}")
    except ImportError as error:
        raise ConfigError(
            "a login by AWS identity needs botocore: pip install botocore", reason="NoBotocore"
        ) from error


def _endpoint(region: str | None) -> tuple[str, str]:
    """The address of STS and the region to sign for."""
    own = os.environ.get("AWS_ENDPOINT_URL_STS") or os.environ.get("AWS_ENDPOINT_URL")
    if own:
        return own.rstrip("/") + "/", region or WHOLE_WORLD
    if not region:
        return "https://sts.amazonaws.com/", WHOLE_WORLD
    suffix = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    return f"https://sts.{region}.{suffix}/", region


def _host(server: str) -> str:
    """The host that the server goes by, with its port unless it is the scheme's own."""
    parts = urlsplit(server)
    host = (parts.hostname or "").lower()
    if ":" in host:
        host = f"[{host}]"
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    return host if parts.port in (None, usual) else f"{host}:{parts.port}"
