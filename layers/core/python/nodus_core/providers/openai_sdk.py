"""Chat Completions endpoints through the official `openai` SDK. Slow to import: only when a call needs it."""

import httpx2
import openai

from nodus_core.providers.credentials import Credential
from nodus_core.providers.http import SdkSender, http_client
from nodus_core.providers.posting import Timeouts

_PUBLIC = "https://api.openai.com/v1"


def openai_sender(
    credential: Credential, timeouts: Timeouts, transport: httpx2.BaseTransport | None = None
) -> SdkSender:
    """A sender to the endpoint. The base address is used as it is, with its `/v1` where there is one."""
    client = openai.OpenAI(
        api_key=credential.api_key,
        base_url=credential.base_url or _PUBLIC,
        max_retries=0,
        http_client=http_client(openai.DefaultHttpxClient, credential.base_url, timeouts, transport),
    )
    return SdkSender(
        client,
        "/chat/completions",
        openai.APIStatusError,
        openai.APIConnectionError,
        seconds=timeouts.connect + timeouts.reply,
    )
