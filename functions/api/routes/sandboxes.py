"""Routes below a Sandbox: its machine, and the commands in it. The Sandbox itself is an object like others."""

from typing import Any

from aws_lambda_powertools.event_handler import Response
from nodus_core.access.door import Place
from nodus_core.conversations.sandbox_output import LONGEST_WAIT_S
from nodus_core.inference.errors import ModelNotOffered
from nodus_core.inference.offered_texts import texts
from nodus_core.resources.document import bad
from nodus_core.resources.kinds import API_VERSION, BY_NAME
from nodus_core.resources.media_types import JSON
from nodus_core.resources.sandbox_command import read_command

from functions.api.call import Call
from functions.api.gate import Gate, always, reply, text_reply
from functions.api.routes.lists import list_reply, outcome_reply

MAY_READ = BY_NAME["Sandbox"].permission("read")
MAY_WRITE = BY_NAME["Sandbox"].permission("write")


def add(gate: Gate) -> None:
    service = gate.service

    @gate.behind("POST", "/sandboxes/<name>/start", MAY_WRITE, repeatable=always)
    def start(place: Place, call: Call, name: str) -> Response[Any]:
        call.only()
        outcome, was_wanted = service.sandboxes.start(place, name)
        return outcome_reply(service, outcome, code=200 if was_wanted else 202)

    _add_commands(gate)
    _add_inference(gate)

    @gate.behind("POST", "/sandboxes/<name>/stop", MAY_WRITE, repeatable=always)
    def stop(place: Place, call: Call, name: str) -> Response[Any]:
        call.only()
        outcome, was_wanted = service.sandboxes.stop(place, name)
        return outcome_reply(service, outcome, code=200 if was_wanted else 202)


def _add_inference(gate: Gate) -> None:
    @gate.behind("GET", "/sandboxes/<name>/inference", MAY_READ)
    def inference(place: Place, call: Call, name: str) -> Response[Any]:
        call.only("model")
        seen = gate.service.machines.find(place, name)  # nothing is started by it (NOD-410)
        try:
            told = texts(seen.name, call.query.get("model"), call.headers.get("host", ""))
        except ModelNotOffered as problem:
            raise bad(f"model: {problem}") from None
        return reply({"apiVersion": API_VERSION, "kind": "SandboxInference", **told})


def _add_commands(gate: Gate) -> None:
    commands, outputs, below = gate.service.commands, gate.service.output, "/sandboxes/<name>/commands"

    @gate.behind("POST", below, MAY_WRITE, repeatable=always)
    def run(place: Place, call: Call, name: str) -> Response[Any]:
        call.only()
        call.content_type(JSON)
        shown, was_placed = commands.run(place, name, read_command(call.json()))
        return reply(shown, 200 if was_placed else 202)

    @gate.behind("GET", below, MAY_READ)
    def list_commands(place: Place, call: Call, name: str) -> Response[Any]:
        call.only("limit", "continue")
        page = commands.page(place, name, call.limit(), call.query.get("continue"))
        return list_reply("SandboxCommandList", page, {})

    @gate.behind("GET", f"{below}/<command>", MAY_READ)
    def get(place: Place, call: Call, name: str, command: str) -> Response[Any]:
        call.only()
        return reply(commands.get(place, name, command))

    @gate.behind("GET", f"{below}/<command>/output", MAY_READ)
    def output(place: Place, call: Call, name: str, command: str) -> Response[Any]:
        call.only("offset", "timeoutSeconds")
        offset, wait = call.number("offset"), call.number("timeoutSeconds")
        if offset is None:
            return text_reply(outputs.whole(place, name, command))
        shown = outputs.part(place, name, command, offset, min(wait or 0, LONGEST_WAIT_S))
        return reply({"apiVersion": API_VERSION, "kind": "SandboxCommandOutput", **shown})

    @gate.behind("POST", f"{below}/<command>/cancel", MAY_WRITE, repeatable=always)
    def cancel(place: Place, call: Call, name: str, command: str) -> Response[Any]:
        call.only()
        shown, had_ended = commands.cancel(place, name, command)
        return reply(shown, 200 if had_ended else 202)
