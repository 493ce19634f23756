"""What can become of a model call beside a reply.

ModelUnavailable (RetryableError)     certainly no reply: wait `retry_after`, then the same call again (FLD-04)
ModelRefusedRequest (TerminalError)   the provider said no; the same call would be refused again
└── ContextTooLong                    because the conversation is longer than the model reads
ModelOutcomeUnknown (NodusError)      sent, but no whole reply came back: it may have run and may be billed
ModelNotOffered (TerminalError)       the catalogue has no such model for this choice; nothing was sent

Messages carry the provider's own reason, never a key.
"""

from nodus_core.kernel.errors import NodusError, RetryableError, TerminalError

LONGEST_RETRY_AFTER_S = 900.0
"""Seconds up to which a provider's waiting time is believed: it holds back every call with its key, so one of them
asks again after that."""


class ModelUnavailable(RetryableError):
    """The provider did not take the call. `retry_after` is in seconds, None when it named no time.

    `busy`: it takes no call with this key now, so that every other one had better wait too (FLD-04).
    """

    def __init__(self, message: str, retry_after: float | None = None, *, busy: bool = False) -> None:
        super().__init__(message, retry_after)
        self.busy = busy


class ModelRefusedRequest(TerminalError):
    """The provider refused the call. `status` is its HTTP status, None when there was none."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class ContextTooLong(ModelRefusedRequest):
    """The conversation has more tokens than the model's window holds; a shorter one would be taken."""


class ModelOutcomeUnknown(NodusError):
    """The call was sent and its outcome is not known; whether it may be made again is the caller's rule."""


class ModelNotOffered(TerminalError):
    """A model choice that the operator's catalogue does not serve. `field` is the path in `spec.model`."""

    def __init__(self, message: str, field: str = "spec.model") -> None:
        super().__init__(message)
        self.field = field
