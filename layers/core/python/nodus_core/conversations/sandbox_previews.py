"""Previews: a web service in a sandbox, seen at an address with a token, for a while (NOD-417, decision 33).

make ──► an address with a token ──► visit: an ask to the daemon, which asks the service ──► its answer
              │                         └── more than 128 KiB: by the store, either way
              └── ends by its time, with the key that made it, with its sandbox

Whoever knows the address may do what the key that made it may. Visits are no work: they keep no Sandbox from being idle.
"""

import base64
import logging
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nodus_core.access.door import Door, Place
from nodus_core.access.grant import Rate
from nodus_core.access.permissions import SANDBOXES_WRITE
from nodus_core.conversations.asking import Answer, Asking, Question
from nodus_core.conversations.machines_seen import MachinesSeen, Seen
from nodus_core.conversations.sandbox_files import MOST_INLINE_BYTES, digest_of
from nodus_core.conversations.shelf import Shelf
from nodus_core.journal.asks import PLACES
from nodus_core.journal.ports import Ids
from nodus_core.journal.transfers import Transfers
from nodus_core.kernel.errors import NodusError, Reason, Refusal
from nodus_core.kernel.ids import digest
from nodus_core.kernel.objects import SANDBOX
from nodus_core.kernel.previews import Preview
from nodus_core.kernel.sandboxes import Sandbox
from nodus_core.kernel.times import stamp
from nodus_core.resources.sandbox_preview import SandboxPreview
from nodus_core.sandboxes.answers import MOST_PAGE_BYTES, SentBody, ServedPage, decoded, done, read_as
from nodus_core.sandboxes.preview_headers import (
    PREFLIGHT,
    Site,
    is_long,
    is_preflight,
    to_service,
    to_visitor,
    wants_another_protocol,
)

PATH = "/preview"
"""Below it stand all previews, each under its token."""

MOST_BODY = MOST_PAGE_BYTES
"""Bytes of a request's body, and of an answer's: in base64 it is what Lambda takes, 6 MB."""

LONGEST_S = 15
"""Seconds from the request to the last byte of the service's answer."""

MOST_AT_ONCE = PLACES // 2
"""Visits of a sandbox that wait for their answers: a page that asks for everything leaves room for other asks."""

MOST_A_SECOND, MOST_IN_A_BURST = 30, 200
"""Visits of an address, where its key may do more: each is paid by the deployment, and holds a function while it waits."""

_WAIT_S, _PATIENCE_S, _BODY_WAIT_S, _BODY_PATIENCE_S = 17, 3, 5, 1
"""Together less than the 30 s after which API Gateway ends a call."""

_MOST = Rate(MOST_A_SECOND, MOST_IN_A_BURST)
_TOKEN_BYTES = 32
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}")

_TROUBLE: dict[str, tuple[Reason, str]] = {
    "unreachable": (
        "BadGateway",
        "nothing answers at {where}; start a service there that listens at localhost or at all addresses",
    ),
    "no_network": (
        "BadGateway",
        "nothing can be reached at {where}: what keeps its commands from the network keeps them from loopback, too",
    ),
    "timeout": ("GatewayTimeout", "{where} has not answered to the end within {seconds} s"),
    "too_large": (
        "BadGateway",
        "{where} answers with more than {most} bytes, which is all that a preview passes; fetch a large file by nodus "
        "sandbox files get, or a part of it by Range",
    ),
    "long_headers": ("BadGateway", "{where} answers with headers that are too long"),
    "no_http": ("BadGateway", "what answers at {where} speaks no HTTP, or has ended its answer too early"),
}
"""What keeps an answer from coming, by the daemon's word for it. The text is ours: a daemon's word is the agent's."""

Shown = dict[str, Any]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Visit:
    """A request of a visitor. `target`: its path below the preview, quoted, and its query; header names in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Page:
    """What the visitor gets."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass(frozen=True)
class SandboxPreviews:
    """Use cases of previews.

    `address` is that of the HTTP API, `entropy` gives random bytes as text.
    """

    shelf: Shelf
    door: Door
    machines: MachinesSeen
    asking: Asking
    transfers: Transfers
    ids: Ids
    address: str
    entropy: Callable[[int], str] = field(default=secrets.token_urlsafe, repr=False)

    def make(self, place: Place, name: str, asked: SandboxPreview) -> Shown:
        """An address of a port of a running sandbox.

        Raises `Refusal`: what `to_change` and `running` of `MachinesSeen` do.
        """
        seen = self.machines.to_change(place, name)
        self.machines.running(seen)
        ends, key_ends = self.shelf.clock.now() + asked.lives, place.grant.expires_at
        if key_ends is not None:
            ends = min(ends, key_ends)
        token = self.entropy(_TOKEN_BYTES)
        made = Preview(
            digest(token), place.org, place.project, seen.name, seen.owner.uid, asked.port, place.key, ends
        )
        self.shelf.journal.previews.issue(made)
        return {
            "sandbox": seen.name,
            "port": asked.port,
            "url": f"{self._prefix(token)}/",
            "expiresAt": stamp(ends),
        }

    def visit(self, token: str, visit: Visit) -> Page:
        """The answer of the service to a visitor.

        Raises `Refusal`: `NotFound` for a token that is none, or none any more, `BadRequest` for a WebSocket,
        `PayloadTooLarge`, `SandboxNotRunning`, `BadGateway` and `GatewayTimeout` where the service gives no answer,
        `TooManyRequests`, and what `Asking.ask` raises.
        """
        preview = self._find(token)
        if wants_another_protocol(visit.headers):
            raise Refusal("BadRequest", "a preview passes requests and answers; WebSockets are not passed")
        site = Site.at(self._prefix(token), preview.port)
        if is_preflight(visit.method, visit.headers):
            return Page(204, {**to_visitor((), site), **PREFLIGHT})
        if len(visit.body) > MOST_BODY:
            raise Refusal("PayloadTooLarge", f"a preview passes bodies of at most {MOST_BODY} bytes")
        seen = self._seen(preview)
        served, body = self._exchange(seen, self.machines.running(seen), visit, site)
        headers = to_visitor(((name, value) for name, value in served.headers), site)
        if is_long(headers):
            raise _trouble(seen, preview.port, "long_headers")
        return Page(served.status, headers, body)

    def _find(self, token: str) -> Preview:
        found = self.shelf.journal.previews.find(digest(token)) if _TOKEN.fullmatch(token) else None
        if found is None or found.expires_at <= self.shelf.clock.now():
            raise _no_preview()
        return found

    def _seen(self, preview: Preview) -> Seen:
        """The sandbox, as long as the key that has made the preview may change it.

        Why it may not any more is told to nobody: a visitor is not the key's holder.
        """
        use = f"view#{preview.hash}"
        try:
            place = self.door.enter_again(preview.key, preview.project, SANDBOXES_WRITE, use, _MOST)
            seen = None if place is None else self.machines.to_change(place, preview.sandbox)
        except Refusal as refusal:
            raise refusal if refusal.reason == "TooManyRequests" else _no_preview() from None
        if seen is None or seen.owner.uid != preview.owner:
            raise _no_preview()
        return seen

    def _exchange(self, seen: Seen, machine: Sandbox, visit: Visit, site: Site) -> tuple[ServedPage, bytes]:
        headers = to_service(visit.headers, site, visit.body, visit.method)
        request = {
            "port": site.port,
            "method": visit.method,
            "target": visit.target,
            "headers": [text for pair in headers for text in pair],
            "timeoutS": LONGEST_S,
        }
        store = f"view-{digest(self.ids.fresh('view'))}"
        try:
            request |= self._given(seen, store, visit.body)
            question = Question(
                "http",
                request,
                works=False,
                wait_s=_WAIT_S,
                places=MOST_AT_ONCE,
                patience_s=_PATIENCE_S,
            )
            answer = self.asking.ask(seen.name, machine, question)
            served = read_as(ServedPage, _answered(seen, site.port, answer))
            if served.content is not None:
                return served, decoded(served.content)
            return served, self._fetched(seen, machine, store, served)
        finally:
            if len(visit.body) > MOST_INLINE_BYTES:
                self._remove(seen, f"{store}-in")

    def _given(self, seen: Seen, store: str, body: bytes) -> Shown:
        """The body of a request, as the daemon takes it."""
        if len(body) <= MOST_INLINE_BYTES:
            return {"content": base64.b64encode(body).decode()} if body else {}
        self.transfers.put(seen.scope, f"{store}-in", body)
        address = self.transfers.address_to_get(seen.scope, f"{store}-in")
        return {"url": address, "size": len(body), "sha256": digest_of(body)}

    def _fetched(self, seen: Seen, machine: Sandbox, store: str, served: ServedPage) -> bytes:
        """The body of a large answer, by the store."""
        request = {
            "held": served.held,
            "url": self.transfers.address_to_put(seen.scope, store, served.size),
        }
        question = Question(
            "http_body", request, works=False, wait_s=_BODY_WAIT_S, patience_s=_BODY_PATIENCE_S
        )
        answer = self.asking.ask(seen.name, machine, question)
        read_as(SentBody, done(seen.name, answer))
        try:
            body = self.transfers.get(seen.scope, store, MOST_BODY + 1)
        finally:
            self._remove(seen, store)
        if body is None or len(body) != served.size:
            raise Refusal(
                "ServiceUnavailable", "the sandbox's daemon has sent what is no answer", retry_after=1
            )
        return body

    def _remove(self, seen: Seen, store: str) -> None:
        """What stays there goes within a day, and spoils no answer."""
        try:
            self.transfers.remove(seen.scope, store)
        except NodusError as error:
            log.warning("a body of a preview of sandbox %s was not removed: %s", seen.name, error)

    def _prefix(self, token: str) -> str:
        return f"{self.address}{PATH}/{token}"


def _answered(seen: Seen, port: int, answer: Answer) -> Answer:
    """The answer, which holds one of the service. Raises `Refusal` where there is none."""
    word = str(answer.get("reason"))
    if answer.get("state") == "exited" or word not in _TROUBLE:
        return done(seen.name, answer)
    raise _trouble(seen, port, word)


def _trouble(seen: Seen, port: int, word: str) -> Refusal:
    reason, text = _TROUBLE[word]
    where = f"port {port} of Sandbox {seen.name!r}"
    message = text.format(where=where, seconds=LONGEST_S, most=MOST_BODY)
    return Refusal(reason, message, kind=SANDBOX, name=seen.name)


def _no_preview() -> Refusal:
    return Refusal(
        "NotFound", "there is no such preview (any more); make another one: nodus sandbox preview NAME PORT"
    )
