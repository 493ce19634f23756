"""Frozen objects of machines that are started before anybody needs them (decision 32)."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class WarmMachine:
    """A machine of the pool that belongs to nobody yet. Hashes are sha256 hex.

    `kind` fixes everything that it was started with and that cannot change any more. `code_hash` is that of the code
    that its task was given, `token_hash` that of its daemon's token, and `enrol_hash` that of the code by which this
    daemon will enrol with the sandbox that it becomes: the daemon has made it, and nobody else ever has it.
    """

    id: str
    kind: str
    code_hash: str
    created_at: datetime
    task: str | None = None
    token_hash: str | None = None
    enrol_hash: str | None = None

    @property
    def is_up(self) -> bool:
        """Whether it can be given to somebody: its task is known, and its daemon asks whose it is."""
        return self.task is not None and self.token_hash is not None and self.enrol_hash is not None


@dataclass(frozen=True)
class BoundMachine:
    """A machine that was given to a sandbox, by the id under which its task was started: it never changes again."""

    id: str
    sandbox: str
    token_hash: str
    bound_at: datetime
