"""`POST /apis/nodus.dev/v1/logins`: a key for whoever has none yet (docs/protocols.md §1)."""

from typing import Any

from aws_lambda_powertools.event_handler import Response
from nodus_core.resources.login import read_login
from nodus_core.resources.media_types import JSON

from functions.api.gate import BASE_PATH, Gate, reply


def add(gate: Gate) -> None:
    @gate.open("POST", f"{BASE_PATH}/logins")
    def log_in() -> Response[Any]:
        call = gate.call()
        call.only()
        call.content_type(JSON)
        asked = read_login(call.json())
        login = gate.service.logins.log_in(asked, call.headers.get("nodus-org"), call.source)
        gate.facts |= {"org": login["spec"]["organization"], "key": login["status"]["apiKey"]}
        return reply(login, 201)
