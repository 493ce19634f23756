"""Messages endpoints through the official `anthropic` SDK. Slow to import: only when a call needs it."""

import anthropic
import httpx2

from nodus_core.providers.credentials import Credential
from nodus_core.providers.http import SdkSender, http_client
from nodus_core.providers.posting import Timeouts

_PUBLIC = "https://api.anthropic.com"


def anthropic_sender(
    credential: Credential, timeouts: Timeouts, transport: httpx2.BaseTransport | None = None
) -> SdkSender:
    """A sender to the endpoint. The base address may end in `/v1` or not; the SDK adds it."""
    client = anthropic.Anthropic(
        api_key=credential.api_key,
        base_url=(credential.base_url or _PUBLIC).rstrip("/").removesuffix("/v1"),
        max_retries=0,
        http_client=http_client(anthropic.DefaultHttpxClient, credential.base_url, timeouts, transport),
    )
    return SdkSender(
        client,
        "/v1/messages",
        anthropic.APIStatusError,
        anthropic.APIConnectionError,
        seconds=timeouts.connect + timeouts.reply,
    )
