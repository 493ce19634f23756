"""Routes of previews: the address of a service in a sandbox, and the service at that address (decision 33)."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from aws_lambda_powertools.event_handler import Response
from nodus_core.access.door import Place
from nodus_core.conversations.sandbox_previews import PATH, Visit
from nodus_core.resources.kinds import API_VERSION
from nodus_core.resources.media_types import JSON
from nodus_core.resources.sandbox_preview import read_preview
from nodus_core.sandboxes.preview_headers import METHODS

from functions.api.call import Call
from functions.api.gate import Gate, always, reply
from functions.api.routes.sandboxes import MAY_WRITE

_BELOW = f"{PATH}/"
_AS_IT_IS = "!$%&'()*+,/:;=@~"
"""What stays in a path, which comes decoded but for its `%25`."""
_IN_QUERY = _AS_IT_IS + "?[]"


def add(gate: Gate) -> None:
    previews = gate.service.previews

    @gate.behind("POST", "/sandboxes/<name>/previews", MAY_WRITE, repeatable=always)
    def make(place: Place, call: Call, name: str) -> Response[Any]:
        call.only()
        call.content_type(JSON)
        made = previews.make(place, name, read_preview(call.json()))
        return reply({"apiVersion": API_VERSION, "kind": "SandboxPreview", **made}, 201)

    def visit() -> Response[Any]:
        event = gate.app.current_event.raw_event
        token, slash, path = str(event["rawPath"]).removeprefix(_BELOW).partition("/")
        query = quote(event.get("rawQueryString") or "", safe=_IN_QUERY)
        behind = f"?{query}" if query else ""
        if not slash:  # relative links count from a folder
            return Response(308, None, "", headers={"Location": f"{quote(token, safe='')}/{behind}"})
        call = gate.call()
        target = f"/{quote(path, safe=_AS_IT_IS)}{behind}"
        page = previews.visit(token, Visit(call.method, target, call.headers, call.body))
        return Response(page.status, None, page.body, headers=dict(page.headers))

    for method in METHODS:
        # The rule is a regular expression: below its token a preview has the paths of its service.
        gate.open(method, f"{PATH}/.+")(visit)


def shown_path(event: Mapping[str, Any]) -> str | None:
    """The path of a request as it may be logged: without a preview's token, which is a secret."""
    path = event.get("rawPath")
    return PATH if path is not None and path.startswith(_BELOW) else path
