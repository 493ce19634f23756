"""AWS identities: who signed a request, and the one spelling under which an identity is mapped."""

import re
from typing import Protocol

from nodus_core.access.signed_calls import Judged

_ROLE_SESSION = re.compile(
    r"arn:(aws[a-z-]*):sts::(\d{12}):assumed-role/([\w+=,.@-]{1,64})/[\w+=,.@-]{1,64}", re.ASCII
)
_ROLE = re.compile(r"arn:(aws[a-z-]*):iam::(\d{12}):role/(?:[!-~]+/)?([\w+=,.@-]{1,64})", re.ASCII)
_OTHER = re.compile(
    r"arn:aws[a-z-]*:iam::\d{12}:(?:root|user/(?:[!-~]+/)?[\w+=,.@-]{1,64})"
    r"|arn:aws[a-z-]*:sts::\d{12}:federated-user/[\w+=,.@-]{1,64}",
    re.ASCII,
)
LONGEST_ARN = 700


class Identities(Protocol):
    """AWS's word."""

    def whose(self, call: Judged) -> str:
        """The ARN of whoever signed the call.

        Raises `Refusal` `Unauthorized` when AWS does not accept it, `RetryableError` when it does not answer.
        """
        ...


def normalised(arn: str) -> str | None:
    """The ARN under which an identity is mapped; None for a text that is no identity's.

    A session of a role is the role. A role stands without its path, which its sessions do not show: names of roles
    are unique in their account whatever their path.
    """
    if len(arn) > LONGEST_ARN:
        return None
    found = _ROLE_SESSION.fullmatch(arn) or _ROLE.fullmatch(arn)
    if found is not None:
        partition, account, name = found.groups()
        return f"arn:{partition}:iam::{account}:role/{name}"
    return arn if _OTHER.fullmatch(arn) else None
