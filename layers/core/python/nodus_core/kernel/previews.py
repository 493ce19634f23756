"""Previews: who knows an address may use a web service in a sandbox, until a moment."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Preview:
    """The right to use one port of one sandbox. `hash` is the sha256 hex of the token in its address.

    `owner` is the uid of the Sandbox or AgentRun that `sandbox` is the name of, or of whose: another one under the same
    name is not meant. `key` is the token hash of the key that has made it: what that may not do any more, nobody may by it.
    """

    hash: str
    org: str
    project: str
    sandbox: str
    owner: str
    port: int
    key: str
    expires_at: datetime
