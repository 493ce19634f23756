"""Model providers over HTTP: the only place that imports their SDKs, each when the first call needs it.

The `line` function imports Anthropic's at its start, where nobody waits for it yet.
"""

from nodus_core.providers.credentials import BadCredentials, Credential, Credentials
from nodus_core.providers.models import HttpModels
from nodus_core.providers.posting import Timeouts

__all__ = ["BadCredentials", "Credential", "Credentials", "HttpModels", "Timeouts"]
