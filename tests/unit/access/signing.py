"""A client's signed request to STS, made as `nodus login` makes it: by botocore."""

from datetime import datetime
from typing import Any
from unittest.mock import patch

from botocore import auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from nodus_core.resources.login import BODY

FORM = "application/x-www-form-urlencoded; charset=utf-8"
STS = "https://sts.eu-central-1.amazonaws.com/"
KEY = Credentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG")


def signed(
    at: datetime,
    server: str = "api.test",
    *,
    url: str = STS,
    credentials: Credentials = KEY,
    service: str = "sts",
    region: str = "eu-central-1",
    more: dict[str, str] | None = None,
) -> dict[str, Any]:
    """`spec.aws` of a Login."""
    headers = {"Content-Type": FORM, "X-Nodus-Server": server, **(more or {})}
    request = AWSRequest("POST", url, data=BODY, headers=headers)
    with patch.object(auth, "get_current_datetime", lambda: at.replace(tzinfo=None)):
        auth.SigV4Auth(credentials, service, region).add_auth(request)
    return {"method": "POST", "url": url, "headers": dict(request.headers.items()), "body": BODY}
