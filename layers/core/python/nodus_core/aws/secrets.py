"""Secrets of Secrets Manager, read at most every 30 seconds."""

import threading
import time
from collections.abc import Callable
from typing import Any

from nodus_core.aws.failures import translated
from nodus_core.kernel.errors import TerminalError

FRESH_S = 30.0
"""Seconds for which a value that was read is taken for the present one."""


class SecretsManagerSecrets:
    """Reads secrets; a changed one is seen within `FRESH_S`. `client` is botocore's for Secrets Manager."""

    def __init__(self, client: Any, elapsed: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._elapsed = elapsed
        self._known: dict[str, tuple[float, str]] = {}
        self._lock = threading.Lock()

    def read(self, secret: str) -> str:
        """The text of a secret, by ARN or name. Raises `RetryableError`, `TerminalError`; neither shows it."""
        with self._lock:
            read_at, value = self._known.get(secret, (float("-inf"), ""))
            if self._elapsed() - read_at < FRESH_S:
                return value
            with translated(f"reading secret {secret}"):
                answer = self._client.get_secret_value(SecretId=secret)
            if "SecretString" not in answer:
                raise TerminalError(f"secret {secret} is binary: store a text")
            self._known[secret] = (self._elapsed(), str(answer["SecretString"]))
            return self._known[secret][1]
