"""Swagger as the protocol buffer `openapi.v2.Document` of gnostic, the only form in which kubectl asks for it.

The field numbers are those of gnostic's OpenAPIv2.proto; what our document does not use is not here.
"""

import json
from collections.abc import Mapping
from typing import Any

Json = Mapping[str, Any]

_VARINT, _BYTES = 0, 2
_METHODS = {"get": 2, "put": 3, "post": 4, "delete": 5, "patch": 8}
_TEXTS_OF_SCHEMA = {"$ref": 1, "format": 2, "description": 4, "pattern": 13}
_NUMBERS_OF_SCHEMA = {
    "maxLength": 11,
    "minLength": 12,
    "maxItems": 14,
    "minItems": 15,
    "maxProperties": 17,
    "minProperties": 18,
}


def encoded(document: Json) -> bytes:
    """The document as kubectl reads it."""
    info = _text(1, document["info"]["title"]) + _text(2, document["info"]["version"])
    paths = b"".join(_block(2, _named(path, _path(item))) for path, item in document["paths"].items())
    definitions = b"".join(
        _block(1, _named(name, _schema(schema))) for name, schema in document["definitions"].items()
    )
    return _text(1, document["swagger"]) + _block(2, info) + _block(8, paths) + _block(9, definitions)


def _path(item: Json) -> bytes:
    return b"".join(_block(_METHODS[method], _operation(each)) for method, each in item.items())


def _operation(operation: Json) -> bytes:
    answers = b"".join(
        _block(1, _named(code, _block(1, _answer(answer)))) for code, answer in operation["responses"].items()
    )
    return b"".join(
        (
            _text(3, operation["description"]),
            _text(5, operation["operationId"]),
            *(_text(6, media) for media in operation["produces"]),
            *(_text(7, media) for media in operation["consumes"]),
            *(_block(8, _block(1, _parameter(each))) for each in operation["parameters"]),
            _block(9, answers),
            _extensions(13, operation),
        )
    )


def _parameter(parameter: Json) -> bytes:
    if parameter["in"] == "body":
        return _block(
            1,
            _text(2, parameter["name"])
            + _text(3, "body")
            + _flag(4)
            + _block(5, _schema(parameter["schema"])),
        )
    of_path = parameter["in"] == "path"
    plain = (
        (_flag(1) if parameter["required"] else b"")
        + _text(2, parameter["in"])
        + _text(3, parameter["description"])
        + _text(4, parameter["name"])
        + _text(5 if of_path else 6, parameter["type"])
    )
    return _block(2, _block(4 if of_path else 3, plain))


def _answer(answer: Json) -> bytes:
    schema = _block(2, _block(1, _schema(answer["schema"]))) if "schema" in answer else b""
    return _text(1, answer["description"]) + schema


def _schema(schema: Json) -> bytes:
    parts = [_text(number, schema[key]) for key, number in _TEXTS_OF_SCHEMA.items() if key in schema]
    parts += [_whole(number, schema[key]) for key, number in _NUMBERS_OF_SCHEMA.items() if key in schema]
    parts += [_text(19, name) for name in schema.get("required", ())]
    parts += [_block(20, _any(value)) for value in schema.get("enum", ())]
    if isinstance(schema.get("additionalProperties"), Mapping):
        parts.append(_block(21, _block(1, _schema(schema["additionalProperties"]))))
    if "type" in schema:
        parts.append(_block(22, _text(1, schema["type"])))
    if "items" in schema:
        parts.append(_block(23, _block(1, _schema(schema["items"]))))
    parts += [_block(24, _schema(part)) for part in schema.get("allOf", ())]
    if "properties" in schema:
        named = (_block(1, _named(name, _schema(item))) for name, item in schema["properties"].items())
        parts.append(_block(25, b"".join(named)))
    return b"".join((*parts, _extensions(31, schema)))


def _extensions(number: int, thing: Json) -> bytes:
    """What begins with `x-`. JSON is YAML, which is what stands in its place."""
    return b"".join(
        _block(number, _named(key, _any(value))) for key, value in thing.items() if key.startswith("x-")
    )


def _any(value: Any) -> bytes:
    return _text(2, json.dumps(value, separators=(",", ":")))


def _named(name: str, value: bytes) -> bytes:
    return _text(1, name) + _block(2, value)


def _flag(number: int) -> bytes:
    return _whole(number, 1)


def _whole(number: int, value: int) -> bytes:
    return _varint(number << 3 | _VARINT) + _varint(value)


def _text(number: int, value: str) -> bytes:
    return _block(number, value.encode())


def _block(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    septets: list[int] = []
    while True:
        value, low = value >> 7, value & 0x7F
        septets.append(low | (0x80 if value else 0))
        if not value:
            return bytes(septets)
