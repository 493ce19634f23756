"""The part of kubectl's JSONPath that scripts use, and nothing that would be read otherwise there.

A template is text with expressions in braces: ``{.status.phase}``, ``{.status.turns[0].model}``, ``{.items[*].kind}``,
``{.metadata.labels['a.b']}``, ``{"\\n"}``, ``{range .items[*]}…{end}``. A path that is not there prints nothing;
several values are printed with spaces between; objects and lists are printed as JSON. Filters, unions and slices
are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from nodus._jsonpath import Path, parse_path, shown
from nodus.cli.failures import usage

_PIECE = re.compile(r"\{(?P<expression>(?:\"[^\"]*\"|'[^']*'|[^{}'\"])*)\}|(?P<text>[^{}]+)")


@dataclass(frozen=True)
class _Range:
    path: Path
    body: tuple[Any, ...]


class Template:
    """A whole ``-o jsonpath=`` template.

    Raises:
        Failure: it cannot be read.
    """

    def __init__(self, text: str) -> None:
        whole = text if "{" in text else f"{{{text}}}"
        pieces = list(_pieces(whole))
        self._nodes = _nodes(iter(pieces), whole, inside=False)

    def render(self, root: Any) -> str:
        """The text for one object."""
        return "".join(_rendered(node, root) for node in self._nodes)


def _pieces(text: str) -> Iterator[re.Match[str]]:
    position = 0
    while position < len(text):
        match = _PIECE.match(text, position)
        if match is None:
            raise usage(f"JSONPath {text!r}: a brace or quote is not closed", "InvalidJSONPath")
        yield match
        position = match.end()


def _nodes(pieces: Iterator[re.Match[str]], whole: str, *, inside: bool) -> tuple[Any, ...]:
    nodes: list[Any] = []
    for piece in pieces:
        if piece["text"] is not None:
            nodes.append(piece["text"])
            continue
        expression = piece["expression"].strip()
        if expression == "end":
            if inside:
                return tuple(nodes)
            raise usage(f"JSONPath {whole!r}: {{end}} without {{range}}", "InvalidJSONPath")
        if expression.startswith("range "):
            nodes.append(_Range(parse_path(expression[6:]), _nodes(pieces, whole, inside=True)))
        elif expression[:1] in {'"', "'"}:
            nodes.append(_literal(expression))
        else:
            nodes.append(parse_path(expression))
    if inside:
        raise usage(f"JSONPath {whole!r}: {{range}} without {{end}}", "InvalidJSONPath")
    return tuple(nodes)


def _literal(expression: str) -> str:
    return re.sub(r"\\([nt\\])", lambda match: {"n": "\n", "t": "\t", "\\": "\\"}[match[1]], expression[1:-1])


def _rendered(node: Any, root: Any) -> str:
    if isinstance(node, str):
        return node
    if isinstance(node, Path):
        return " ".join(shown(value) for value in node.values(root))
    loop = cast("_Range", node)
    return "".join(_rendered(inner, value) for value in loop.path.values(root) for inner in loop.body)
