"""Model providers over HTTP: the only place that imports their SDKs, and that only when a call needs one."""

from nodus_core.providers.credentials import BadCredentials, Credential, Credentials
from nodus_core.providers.models import HttpModels
from nodus_core.providers.posting import Timeouts

__all__ = ["BadCredentials", "Credential", "Credentials", "HttpModels", "Timeouts"]
