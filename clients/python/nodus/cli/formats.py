"""Output formats: ``-o table|wide|yaml|json|name|jsonpath=…|jsonpath-file=…|custom-columns=…``."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from nodus.cli import custom_columns, sources, text
from nodus.cli.custom_columns import CustomColumns
from nodus.cli.failures import usage
from nodus.cli.jsonpath import Template

F = TypeVar("F", bound=Callable[..., Any])
WORDS = ("table", "wide", "yaml", "json", "name")
CHANGED = ("yaml", "json", "name")
"""What a command that changes objects can print instead of its message."""
MOST_TEMPLATE_BYTES = 65_536
_TEMPLATES = ("jsonpath=TEMPLATE", "jsonpath-file=FILE", "custom-columns=HEADING:PATH")


@dataclass(frozen=True)
class Format:
    """A chosen format; ``template`` only for ``jsonpath``, ``columns`` only for ``custom-columns``."""

    word: str
    template: Template | None = None
    columns: CustomColumns | None = None
    projects: bool = False
    """Whether a table says of each object in which project it is."""

    @property
    def tabular(self) -> bool:
        """Whether it shows an object in a line."""
        return self.word in {"table", "wide", "name", "custom-columns"}

    @property
    def of_server(self) -> bool:
        """Whether it shows the columns that the server has for the kind."""
        return self.word in {"table", "wide"}


class FormatType(click.ParamType[Format]):
    """The option ``-o``, limited to the formats that a command has."""

    name = "FORMAT"

    def __init__(self, words: tuple[str, ...] = WORDS, *, templates: bool = True) -> None:
        self._words = words
        self._templates = templates

    @property
    def shape(self) -> str:
        """The formats, as the help and refusals list them."""
        return ", ".join((*self._words, *(_TEMPLATES if self._templates else ())))

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Format:
        """Read the option."""
        if isinstance(value, Format):
            return value
        word, _, rest = str(value).partition("=")
        if self._templates and rest:
            if word == "jsonpath":
                return Format(word, Template(rest))
            if word == "jsonpath-file":
                return Format("jsonpath", Template(sources.text(rest, MOST_TEMPLATE_BYTES)))
            if word == "custom-columns":
                return Format(word, columns=custom_columns.parse(rest))
        if str(value) not in self._words:
            raise usage(f"no format {str(value)!r}; there are {self.shape}", "UnknownFormat")
        return Format(word)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The words that begin so."""
        known = (*self._words, *(("jsonpath=", "custom-columns=") if self._templates else ()))
        return [CompletionItem(word) for word in known if word.startswith(incomplete)]


def output_option(
    words: tuple[str, ...] = WORDS,
    *,
    templates: bool = True,
    default: str | None = "table",
    what: str = "How to show it",
) -> Callable[[F], F]:
    """The option ``-o`` of a command.

    Args:
        words: the formats that it has.
        templates: whether it has also those with a template.
        default: the format without the option; ``None``: a line for each object.
        what: what the option does.
    """
    kind = FormatType(words, templates=templates)
    usual = f" (default: {default})" if default else ""
    return click.option(
        "-o", "--output", type=kind, default=default, metavar="FORMAT", help=f"{what}{usual}: {kind.shape}."
    )


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
