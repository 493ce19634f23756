"""The models that this installation offers: the operator's catalogue, and the keys of its endpoints."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from nodus_core.conversations.context import ModelChoice
from nodus_core.inference.catalogue import Catalogue, packaged_catalogue
from nodus_core.inference.errors import ModelUnavailable
from nodus_core.inference.exchange import ModelReply, ModelRequest
from nodus_core.inference.own_keys import own_target
from nodus_core.inference.target import Target
from nodus_core.kernel.errors import RetryableError
from nodus_core.providers.credentials import Credentials
from nodus_core.providers.models import HttpModels
from nodus_core.providers.posting import Timeouts
from nodus_core.resources.families import Family

TIMEOUTS = Timeouts(reply=300)
"""A reply takes at most five minutes; a worker begins a call only while it has that long."""


@dataclass(frozen=True)
class _Known:
    secret: str = field(repr=False)
    catalogue: Catalogue
    models: HttpModels


class OfferedModels:
    """`Models` of the line worker. `read_secret` gives the providers' secret and is asked at every use, so that
    a changed key counts as soon as the reader sees it."""

    def __init__(self, read_secret: Callable[[], str]) -> None:
        self._read_secret = read_secret
        self._known: _Known | None = None
        self._lock = threading.Lock()

    def target(self, choice: ModelChoice, family: str | None) -> Target:
        if choice.own_key is not None:
            return own_target(choice.name or "", choice.wire, choice.own_key)
        return self._current().catalogue.resolve(choice.access, name=choice.name, family=family)

    def families(self, choice: ModelChoice) -> tuple[Family, ...]:
        return self._current().catalogue.families(choice.families)

    def router(self) -> Target:
        return self._current().catalogue.router()

    def gate(self, target: Target) -> str:
        return self._current().models.gate(target)

    def call(self, request: ModelRequest, key: str | None = None) -> ModelReply:
        try:
            models = self._current().models
        except RetryableError as error:
            raise ModelUnavailable("the providers' secret cannot be read now", error.retry_after) from error
        return models.call(request, key)

    def _current(self) -> _Known:
        secret = self._read_secret()
        with self._lock:
            if self._known is None or self._known.secret != secret:
                if self._known is not None:
                    self._known.models.close()
                credentials = Credentials.from_json(secret)
                catalogue = packaged_catalogue(credentials.scripted)
                self._known = _Known(secret, catalogue, HttpModels(credentials, TIMEOUTS))
            return self._known
