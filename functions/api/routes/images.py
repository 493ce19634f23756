"""What sandboxes can be made of, beside the objects of kind EnvironmentImage."""

from typing import Any

from aws_lambda_powertools.event_handler import Response
from nodus_core.access.door import Place
from nodus_core.resources.kinds import API_VERSION, BY_NAME

from functions.api.call import Call
from functions.api.gate import Gate, always, reply
from functions.api.routes.lists import outcome_reply

MAY_READ = BY_NAME["EnvironmentImage"].permission("read")
MAY_WRITE = BY_NAME["EnvironmentImage"].permission("write")


def add(gate: Gate) -> None:
    service = gate.service

    @gate.behind("GET", "/imagechoices", MAY_READ)
    def choices(place: Place, call: Call) -> Response[Any]:
        call.only()
        items = service.environment_images.images.choices(place)
        return reply({"apiVersion": API_VERSION, "kind": "ImageChoiceList", "metadata": {}, "items": items})

    @gate.behind("POST", "/environmentimages/<name>/build", MAY_WRITE, repeatable=always)
    def build(place: Place, call: Call, name: str) -> Response[Any]:
        call.only()
        return outcome_reply(service, service.environment_images.build(place, name), code=200)
