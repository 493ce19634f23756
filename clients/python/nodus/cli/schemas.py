"""A kind's schema out of an OpenAPI document, field by field."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any, cast

from nodus._kinds import Kind
from nodus.cli.failures import usage

Schema = dict[str, Any]
GVK = "x-kubernetes-group-version-kind"


class Schemas:
    """The schemas of a document, with their references followed."""

    def __init__(self, document: Schema) -> None:
        components: Schema = document.get("components") or {}
        self._all: dict[str, Schema] = components.get("schemas") or {}

    def of_kind(self, kind: Kind) -> Schema:
        """The schema of a kind's objects.

        Raises:
            Failure: the document has none.
        """
        for schema in self._all.values():
            meant: list[Schema] = schema.get(GVK) or []
            if any(entry.get("kind") == kind.name for entry in meant):
                return schema
        raise usage(f"the server does not describe {kind.plural}", "NotDescribed")

    def whole(self, schema: Schema) -> Schema:
        """A schema with what it refers to; its own words go before those of what it refers to."""
        made: Schema = {}
        targets: list[Schema] = [*schema.get("allOf", []), schema] if "allOf" in schema else [schema]
        for target in targets:
            named = str(target.get("$ref", "")).rpartition("/")[2]
            made |= self.whole(self._all.get(named, {})) if named else {}
            made |= {key: value for key, value in target.items() if key not in {"$ref", "allOf"}}
        return made

    def inner(self, schema: Schema) -> Schema:
        """The schema of what a field holds: of a list's items, of a mapping's values, else its own."""
        seen = self.whole(schema)
        while True:
            below = seen.get("items") or seen.get("additionalProperties")
            if not isinstance(below, dict):
                return seen
            seen = self.whole(cast("Schema", below))

    def at(self, schema: Schema, path: list[str], shown: str) -> Schema:
        """The schema at a path of fields.

        Raises:
            Failure: there is no such field; the nearest is named.
        """
        here = schema
        for count, name in enumerate(path):
            fields: dict[str, Schema] = self.inner(here).get("properties") or {}
            if name not in fields:
                near = difflib.get_close_matches(name, list(fields), 1)
                hint = f"; did you mean {near[0]!r}?" if near else ""
                listed = ", ".join(fields) or "none"
                place = ".".join([shown, *path[:count]])
                raise usage(f"{place} has no field {name!r}{hint} Fields: {listed}", "UnknownField")
            here = fields[name]
        return here

    def fields(self, schema: Schema) -> Iterator[tuple[str, Schema, bool]]:
        """The fields below: name, schema, and whether it must be given."""
        seen = self.inner(schema)
        required: list[str] = seen.get("required") or []
        below: dict[str, Schema] = seen.get("properties") or {}
        for name, field in below.items():
            yield name, field, name in required

    def type_of(self, schema: Schema) -> str:
        """What a field holds, in a word: ``string``, ``[]Object``, ``map[string]string``."""
        seen = self.whole(schema)
        for key, form in (("items", "[]{}"), ("additionalProperties", "map[string]{}")):
            if isinstance(seen.get(key), dict):
                return form.format(self.type_of(cast("Schema", seen[key])))
        if seen.get("anyOf"):
            return " or ".join(
                dict.fromkeys(self.type_of(each) for each in cast("list[Schema]", seen["anyOf"]))
            )
        return (
            "Object" if seen.get("properties") else str(seen.get("type") or "any").replace("object", "Object")
        )
