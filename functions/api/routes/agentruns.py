"""Routes below a run: what it is told, what it has done. The run itself is an object like others."""

from typing import Any

from aws_lambda_powertools.event_handler import Response
from nodus_core.access.door import Place
from nodus_core.access.permissions import AGENTRUNS_READ, AGENTRUNS_WRITE
from nodus_core.conversations.reading import Elsewhere
from nodus_core.resources.media_types import JSON
from nodus_core.resources.message import read_message
from nodus_core.resources.resolution import read_resolution

from functions.api.call import Call
from functions.api.gate import Gate, always, redirect, reply, text_reply
from functions.api.routes.lists import list_reply, message_reply, outcome_reply


def add(gate: Gate) -> None:
    service = gate.service

    @gate.behind("POST", "/agentruns/<name>/cancel", AGENTRUNS_WRITE, repeatable=always)
    def cancel_run(place: Place, call: Call, name: str) -> Response[Any]:
        call.only()
        outcome, was_finished = service.control.cancel(place, name)
        return outcome_reply(service, outcome, code=200 if was_finished else 202)

    @gate.behind("POST", "/agentruns/<name>/messages", AGENTRUNS_WRITE, repeatable=always)
    def send_message(place: Place, call: Call, name: str) -> Response[Any]:
        call.only()
        call.content_type(JSON)
        return message_reply(service.messages.send(place, name, read_message(call.json())))

    @gate.behind("POST", "/agentruns/<name>/resolution", AGENTRUNS_WRITE, repeatable=always)
    def resolve_step(place: Place, call: Call, name: str) -> Response[Any]:
        call.only()
        call.content_type(JSON)
        stated = read_resolution(call.json())
        return outcome_reply(service, service.resolving.resolve(place, name, stated), code=202)

    @gate.behind("GET", "/agentruns/<name>/steps", AGENTRUNS_READ)
    def list_steps(place: Place, call: Call, name: str) -> Response[Any]:
        call.only("limit", "continue")
        page = service.stepping.page(place, name, call.limit(), call.query.get("continue"))
        return list_reply("StepList", page, {})

    @gate.behind("GET", "/agentruns/<name>/team", AGENTRUNS_READ)
    def get_team(place: Place, call: Call, name: str) -> Response[Any]:
        call.only()
        return reply(service.team.view(place, name))

    @gate.behind("GET", "/agentruns/<name>/answer", AGENTRUNS_READ)
    def get_answer(place: Place, call: Call, name: str) -> Response[Any]:
        call.only()
        answer = service.reading.answer(place, name)
        return redirect(answer.url) if isinstance(answer, Elsewhere) else text_reply(answer)
