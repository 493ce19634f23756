"""The API over a world in memory as a WSGI application, so that tools that speak HTTP can be let loose on it."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl

from tests.unit.api.rest import Context, Rest, api_event

Start = Callable[[str, list[tuple[str, str]]], Any]


class Served:
    """WSGI over one `Rest`; its clock never waits, so a watch ends at once."""

    def __init__(self, rest: Rest) -> None:
        self.rest = rest

    def __call__(self, environ: Mapping[str, Any], start: Start) -> Iterable[bytes]:
        headers = {
            name.removeprefix("HTTP_").replace("_", "-").lower(): value
            for name, value in environ.items()
            if name.startswith("HTTP_")
        }
        if environ.get("CONTENT_TYPE"):
            headers["content-type"] = environ["CONTENT_TYPE"]
        length = int(environ.get("CONTENT_LENGTH") or 0)
        body = environ["wsgi.input"].read(length) if length else None
        # WSGI hands paths on as latin-1 of their bytes.
        path = environ["PATH_INFO"].encode("latin-1").decode("utf-8", "replace")
        query = dict(parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True))
        event = api_event(environ["REQUEST_METHOD"], path, headers, body, query)
        answer = self.rest.gate.answer(event, Context())
        content = answer.get("body") or ""
        raw = base64.b64decode(content) if answer.get("isBase64Encoded") else content.encode()
        code = answer["statusCode"]
        start(f"{code} {HTTPStatus(code).phrase}", _headers(answer))
        return [raw]


def _headers(answer: Mapping[str, Any]) -> list[tuple[str, str]]:
    many = answer.get("multiValueHeaders") or {}
    single = {name: [value] for name, value in (answer.get("headers") or {}).items()}
    return [(name, str(value)) for name, values in (many | single).items() for value in values]
