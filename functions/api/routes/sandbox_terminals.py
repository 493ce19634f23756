"""Routes of the terminals in a sandbox. What is typed and shown goes over the WebSocket API, not through here."""

from typing import Any

from aws_lambda_powertools.event_handler import Response
from nodus_core.access.door import Place
from nodus_core.conversations.listing import PageOf
from nodus_core.resources.media_types import JSON
from nodus_core.resources.sandbox_terminal import read_terminal

from functions.api.call import Call
from functions.api.gate import Gate, always, reply
from functions.api.routes.lists import list_reply
from functions.api.routes.sandboxes import MAY_READ, MAY_WRITE


def add(gate: Gate) -> None:
    terminals, below = gate.service.terminals, "/sandboxes/<name>/terminals"

    @gate.behind("POST", below, MAY_WRITE, repeatable=always)
    def open_one(place: Place, call: Call, name: str) -> Response[Any]:
        call.only()
        call.content_type(JSON)
        shown, was_open = terminals.open(place, name, read_terminal(call.json()))
        return reply(shown, 200 if was_open else 202)

    @gate.behind("GET", below, MAY_READ)
    def list_open(place: Place, call: Call, name: str) -> Response[Any]:
        call.only()
        return list_reply("SandboxTerminalList", PageOf(terminals.all_open(place, name), None), {})

    @gate.behind("GET", f"{below}/<terminal>", MAY_READ)
    def get(place: Place, call: Call, name: str, terminal: str) -> Response[Any]:
        call.only()
        return reply(terminals.get(place, name, terminal))

    @gate.behind("POST", f"{below}/<terminal>/attach", MAY_WRITE, repeatable=always)
    def attach(place: Place, call: Call, name: str, terminal: str) -> Response[Any]:
        call.only()
        return reply(terminals.attach(place, name, terminal))

    @gate.behind("POST", f"{below}/<terminal>/close", MAY_WRITE, repeatable=always)
    def close(place: Place, call: Call, name: str, terminal: str) -> Response[Any]:
        call.only()
        shown, had_ended = terminals.close(place, name, terminal)
        return reply(shown, 200 if had_ended else 202)
