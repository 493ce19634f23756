"""The model port over HTTP: one call, once, to the endpoint of its target."""

import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from http import HTTPStatus
from typing import TYPE_CHECKING

from nodus_core.inference.errors import ModelRefusedRequest
from nodus_core.inference.exchange import ModelReply, ModelRequest
from nodus_core.inference.target import Target, Wire
from nodus_core.inference.wires import BadJson, decode_reply, encode_request
from nodus_core.kernel.ids import digest
from nodus_core.providers.credentials import Credential, Credentials, OwnKeyNetwork
from nodus_core.providers.posting import Answer, ConnectionFailure, NeverSendable, Sender, Timeouts
from nodus_core.providers.verdicts import Scene, connection_error, error_inside, status_error, unreadable

if TYPE_CHECKING:
    from nodus_core.providers.public_network import PublicTransport


def _utc_now() -> datetime:
    return datetime.now(UTC)


class HttpModels:
    """Model calls over the official SDKs; several threads may call at once.

    An SDK is imported at the first call that needs it (1 to 4 seconds), unless its module was imported before.
    """

    def __init__(
        self,
        credentials: Credentials,
        timeouts: Timeouts | None = None,
        now: Callable[[], datetime] = _utc_now,
    ) -> None:
        self._credentials = credentials
        self._timeouts = timeouts or Timeouts()
        self._now = now
        self._senders: dict[tuple[str, Wire], Sender] = {}
        self._lock = threading.Lock()

    def call(self, request: ModelRequest, key: str | None = None) -> ModelReply:
        """Sends the request once; a target of the user's own with the user's `key`.

        Raises: ModelUnavailable, ModelRefusedRequest, ModelOutcomeUnknown; ValueError for messages out of order.
        """
        target = request.target
        credential = self._credential(target, key)
        scene = Scene(target.endpoint, target.model, credential.api_key)
        body = encode_request(request)
        try:
            answer = self._send(target, credential, body).without(credential.api_key)
        except ConnectionFailure as failure:
            raise connection_error(scene, failure.cause, sent=failure.sent) from None
        if answer.status != HTTPStatus.OK:
            raise status_error(scene, answer.status, answer.headers, answer.text, self._now)
        try:
            return decode_reply(request, answer.body)
        except BadJson as error:
            found = error_inside(scene, answer.headers, answer.text, self._now)
            raise (found or unreadable(scene, answer.text, str(error))) from None

    def gate(self, target: Target) -> str:
        """Names the endpoint and key that the target's calls share, without showing the key."""
        credential = self._credentials.get(target.endpoint)
        told = [target.endpoint, *((credential.base_url, credential.api_key) if credential else ())]
        return digest(json.dumps(told))

    def close(self) -> None:
        """Closes all connections; a later call opens new ones."""
        with self._lock:
            for sender in self._senders.values():
                sender.close()
            self._senders.clear()

    def _send(self, target: Target, credential: Credential, body: bytes) -> Answer:
        if target.own_key is None:
            return self._sender(target, credential).send(body)
        # Nothing of a user's call is kept for the next one: neither the key nor a connection.
        sender = _make_own_sender(target.wire, credential, self._timeouts, self._credentials.own_keys)
        try:
            return sender.send(body)
        finally:
            sender.close()

    def _credential(self, target: Target, key: str | None) -> Credential:
        if target.own_key is not None:
            if key is None:
                raise TypeError(f"a call of {target.name} with the user's own key, without the key")
            return Credential(key, target.own_key.base_url)
        if target.endpoint not in self._credentials:
            raise ModelRefusedRequest(
                f"there is no key for endpoint {target.endpoint!r}, which serves {target.name}: "
                "add it to the providers' secret"
            )
        return self._credentials[target.endpoint]

    def _sender(self, target: Target, credential: Credential) -> Sender:
        with self._lock:
            key = (target.endpoint, target.wire)
            if key not in self._senders:
                self._senders[key] = _make_sender(target.wire, credential, self._timeouts)
            return self._senders[key]


def _make_own_sender(
    wire: Wire, credential: Credential, timeouts: Timeouts, network: OwnKeyNetwork
) -> Sender:
    from nodus_core.providers.public_network import PublicTransport  # noqa: PLC0415 - it needs the HTTP stack

    transport = PublicTransport(network.private_hosts, network.certificates)
    return _make_sender(wire, credential, timeouts, transport)


def _make_sender(
    wire: Wire, credential: Credential, timeouts: Timeouts, transport: "PublicTransport | None" = None
) -> Sender:
    """A sender to the credential's address. Raises `ConnectionFailure` for one that no client can be made for."""
    make = _maker(wire)
    try:
        return make(credential, timeouts, transport)
    except Exception as error:
        why = f"no client can be made for its base address ({type(error).__name__}: {error})"
        raise ConnectionFailure(NeverSendable(why), sent=False) from error


def _maker(wire: Wire) -> "Callable[[Credential, Timeouts, PublicTransport | None], Sender]":
    # Imported here, because the two SDKs take seconds to import and a call needs one of them at most.
    if wire == "anthropic":
        from nodus_core.providers.anthropic_sdk import anthropic_sender  # noqa: PLC0415

        return anthropic_sender
    from nodus_core.providers.openai_sdk import openai_sender  # noqa: PLC0415

    return openai_sender
