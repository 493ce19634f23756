"""The gate that every route is behind: who calls, where, with which permission; and how answers look."""

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError
from nodus_core.access.door import Place
from nodus_core.journal.access import AccessKey
from nodus_core.kernel.errors import Refusal
from nodus_core.resources.kinds import API_VERSION
from nodus_core.resources.media_types import BYTES, JSON

from functions.api.call import Call
from functions.api.errors import to_failure
from functions.api.service import Service

BASE_PATH = f"/apis/{API_VERSION}"
BASE = f"{BASE_PATH}/namespaces/<project>"
REQUEST_ID = "X-Request-Id"
"""The header by which an answer is found in the logs."""
_LONG = 200_000
"""Characters of a body from which on it is packed."""

_ALWAYS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}

Route = Callable[..., Response[Any]]
Judged = Callable[[Call], bool]
"""Whether making a call twice does no more than making it once."""
Facts = dict[str, Any]


def reply(
    body: Mapping[str, Any], code: int = 200, headers: Mapping[str, str] | None = None
) -> Response[Any]:
    """A JSON answer."""
    text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return Response(code, JSON, text, headers={**_ALWAYS, **(headers or {})})


def lines_reply(lines: Sequence[Mapping[str, Any]]) -> Response[Any]:
    """JSON objects, one on each line."""
    text = "".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines)
    return Response(200, JSON, text, headers=dict(_ALWAYS))


def reads(call: Call) -> bool:
    """Of a route: only its reads may be made again."""
    return call.is_read


def always(call: Call) -> bool:
    """Of a route: each call states an outcome, or carries the key by which it is known again."""
    return True


def text_reply(text: str) -> Response[Any]:
    return Response(200, "text/plain; charset=utf-8", text, headers=dict(_ALWAYS))


def bytes_reply(code: int, content: bytes, headers: Mapping[str, str]) -> Response[Any]:
    """Bytes as they are; nobody is to guess what they mean."""
    return Response(code, BYTES, content, headers={**_ALWAYS, **headers})


def redirect(url: str, headers: Mapping[str, str] | None = None) -> Response[Any]:
    """Sends the reader elsewhere; clients follow without their key (docs/protocols.md §1)."""
    return Response(307, None, "", headers={**_ALWAYS, **(headers or {}), "Location": url})


@dataclass(frozen=True)
class Rule:
    """A route, and the permission without which nobody reaches it; None where no key is needed."""

    method: str
    path: str
    permission: str | None = None

    def fits(self, path: str) -> bool:
        """Whether this is a path of the route, whatever the method."""
        return re.fullmatch(re.sub("<[a-z_]+>", "[^/]+", self.path), path) is not None


class Gate:
    """Routes of one process. `facts` says of the last call what its log line needs."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.app = APIGatewayHttpResolver()
        self.rules: list[Rule] = []
        self.facts: Facts = {}
        self._repeatable = False
        self._counts = True
        self._request_id = ""
        self.app.exception_handler(Exception)(self._failed)
        self.app.not_found(self._lost)

    def answer(self, event: dict[str, Any], context: Any, *, counts: bool = True) -> dict[str, Any]:
        """The HTTP API's response to an event.

        `counts`: it is a use of the caller's key; else part of a request that this gate has counted already.
        """
        self._repeatable, self._counts = False, counts
        self._request_id = getattr(context, "aws_request_id", "") or "-"
        self.facts = {"request": self._request_id}
        answer = _packed(self.app.resolve(event, context))
        answer.setdefault("headers", {})[REQUEST_ID] = self._request_id
        return answer

    def open(self, method: str, rule: str) -> Callable[[Route], Route]:
        """Registers a route without a key. It is called with the path's names."""

        def register(route: Route) -> Route:
            self._add(Rule(method, rule), route)
            return route

        return register

    def call(self) -> Call:
        """The call that is being answered. Raises `Refusal` `BadRequest`."""
        return Call.of(self.app.current_event.raw_event)

    def caller(self, call: Call) -> AccessKey:
        """The key that a call carries, noted for its log line. Raises `Refusal` `Unauthorized`, `Forbidden`."""
        headers = call.headers
        key = self.service.door.caller(
            headers.get("authorization"), headers.get("nodus-org"), counts=self._counts
        )
        self.facts |= {"org": key.org, "key": key.name}
        return key

    def behind(
        self, method: str, rule: str, permission: str, *, repeatable: Judged = reads, namespaced: bool = True
    ) -> Callable[[Route], Route]:
        """Registers a route below a project, or of the key's organization; nobody reaches it without the permission.

        It is called with the place, the call, and the further names of its path. Where the service is busy,
        `Retry-After` is said of those of its calls that are `repeatable`.
        """

        door = self.service.door

        def enter(key: AccessKey, project: str) -> Place:
            return door.enter(key, project, permission)

        def enter_organization(key: AccessKey, _: str) -> Place:
            return door.enter_organization(key, permission)

        if namespaced:
            return self._behind(Rule(method, BASE + rule, permission), repeatable, enter)
        return self._behind(Rule(method, BASE_PATH + rule, permission), repeatable, enter_organization)

    def across(self, rule: str, permission: str) -> Callable[[Route], Route]:
        """Registers a read through all projects that the key may use; nobody reaches it without the permission."""

        def enter_projects(key: AccessKey, _: str) -> Place:
            return self.service.door.enter_projects(key, permission)

        return self._behind(Rule("GET", BASE_PATH + rule, permission), reads, enter_projects)

    def _behind(
        self, rule: Rule, repeatable: Judged, enter: Callable[[AccessKey, str], Place]
    ) -> Callable[[Route], Route]:
        """Registers a route that is called with the place that `enter` gives to a key and the path's project."""

        def register(route: Route) -> Route:
            def guarded(project: str = "", **names: str) -> Response[Any]:
                call = self.call()
                self._repeatable = repeatable(call)
                place = enter(self.caller(call), project)
                if place.project:
                    self.facts["project"] = place.project
                return route(place, call, **names)

            self._add(rule, guarded)
            return route

        return register

    def _add(self, rule: Rule, route: Route) -> None:
        self.rules.append(rule)
        self.app.route(rule.path, method=rule.method)(route)

    def _failed(self, error: Exception) -> Response[Any]:
        failure = to_failure(error, self._request_id, repeatable=self._repeatable)
        self.facts["reason"] = failure.reason
        if failure.ours:
            self.facts["error"] = error
        return reply(failure.body, failure.code, failure.headers)

    def _lost(self, _: NotFoundError) -> Response[Any]:
        """No route: the path is none, or takes other methods (as of a whole list: it is not deleted at once).

        It follows from the routes alone, which are published: no key is asked for, and nothing is read.
        """
        method, path = self.app.current_event.http_method, self.app.current_event.path
        taken = [rule.method for rule in self.rules if rule.fits(path)]
        if not taken or method in taken:  # with a name in it that is none
            return self._failed(Refusal("NotFound", "there is nothing at this path; see /openapi.json"))
        allowed = ", ".join(taken)
        refused = self._failed(Refusal("MethodNotAllowed", f"{method} is not taken here, only {allowed}"))
        refused.headers["Allow"] = allowed
        return refused


def _packed(answer: dict[str, Any]) -> dict[str, Any]:
    """A long body goes in base64: it is a third more, whatever is in it.

    As a text it would be escaped once more, and where Lambda's runtime escapes all but ASCII, be up to three times as
    long, beyond the 6 MB of an answer.
    """
    body = answer.get("body")
    if answer.get("isBase64Encoded") or not isinstance(body, str) or len(body) < _LONG:
        return answer
    packed = base64.b64encode(body.encode()).decode()
    return {**answer, "body": packed, "isBase64Encoded": True}
