"""Output formats: ``-o table|wide|yaml|json|name|jsonpath=…``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import click

from nodus.cli import text
from nodus.cli.failures import usage
from nodus.cli.jsonpath import Template

WORDS = ("table", "wide", "yaml", "json", "name")


@dataclass(frozen=True)
class Format:
    """A chosen format; ``template`` only for ``jsonpath``."""

    word: str
    template: Template | None = None


class FormatType(click.ParamType[Format]):
    """The option ``-o``, limited to the formats that a command has."""

    name = "FORMAT"

    def __init__(self, words: tuple[str, ...] = WORDS, *, jsonpath: bool = True) -> None:
        self._words = words
        self._jsonpath = jsonpath

    @property
    def shape(self) -> str:
        """The formats, as the help shows them."""
        return "|".join((*self._words, *(["jsonpath=TEMPLATE"] if self._jsonpath else [])))

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """The formats in the usage line."""
        return self.shape

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Format:
        """Read the option."""
        if isinstance(value, Format):
            return value
        word = str(value)
        if self._jsonpath and word.startswith("jsonpath="):
            return Format("jsonpath", Template(word.removeprefix("jsonpath=")))
        if word not in self._words:
            raise usage(f"no format {word!r}; there are {self.shape}", "UnknownFormat")
        return Format(word)


def to_json(value: Any) -> str:
    """Indented JSON: exactly the value, and nothing that a terminal acts on (NOD-008)."""
    return text.json_safe(json.dumps(value, indent=2, ensure_ascii=False))


def to_json_line(value: Any) -> str:
    """The same in one line."""
    return text.json_safe(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def to_yaml(value: Any) -> str:
    """YAML that reads back as the same value; long texts as blocks."""
    import yaml  # noqa: PLC0415 (60 ms that only this format pays)

    untyped: Any = yaml  # its stubs leave parameters without types, which strict checking refuses

    class Dumper(yaml.SafeDumper):
        """Blocks for texts of several lines, escapes for what a terminal would act on."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

        def write_double_quoted(self, text: str, split: bool = True) -> None:
            # PyYAML escapes everything that is not ASCII then: exact, and safe to show.
            self.allow_unicode = False
            super().write_double_quoted(text, split)
            self.allow_unicode = True

    def string(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
        style = None
        if text.holds_marks(value):
            style = '"'
        elif "\n" in value:
            style = "|"
        node: yaml.ScalarNode = untyped.SafeDumper.represent_scalar(
            dumper, "tag:yaml.org,2002:str", value, style=style
        )
        return node

    Dumper.add_representer(str, string)
    made: str = untyped.dump(value, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=110)
    return made
