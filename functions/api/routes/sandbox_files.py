"""Routes of the files of a Sandbox (NOD-425 to NOD-430, NODQ-67)."""

from typing import Any

from aws_lambda_powertools.event_handler import Response
from nodus_core.access.door import Place
from nodus_core.kernel.errors import Refusal
from nodus_core.resources.sandbox_file import read_path

from functions.api.call import Call
from functions.api.gate import Gate
from functions.api.routes.lists import list_reply
from functions.api.routes.sandboxes import MAY_READ

FILES = "/sandboxes/<name>/files"


def add(gate: Gate) -> None:
    files = gate.service.files

    @gate.behind("GET", FILES, MAY_READ)
    def read(place: Place, call: Call, name: str) -> Response[Any]:
        call.only("path", "list", "limit", "continue")
        path = read_path(call.query)
        if not call.flag("list"):
            raise Refusal(
                "NotAvailable", "the bytes of a file cannot be read yet; list=true tells what there is"
            )
        return list_reply(
            "SandboxFileList", files.page(place, name, path, call.limit(), call.query.get("continue")), {}
        )
