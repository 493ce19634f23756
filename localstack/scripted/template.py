"""Small templates in script texts: `{{ results[-1].text | search('Python ([0-9.]+)') }}`.

An expression is a value and any number of filters behind `|`.

Values:  `results[N].text`, `results[N].name`, `user`, `model`, `turn`, `match[N]`, `match['group']`
Filters: `search('regex')` (its first group, or all that it found), `default('text')` when nothing was found,
         `trim`, `first_line`, `last_line`, `times('1000')` (that often, one behind the other)

It is parsed as a Python expression and walked by hand: nothing but these forms is ever run.
"""

import ast
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from localstack.scripted.heard import Result

_TEMPLATE = re.compile(r"\{\{(.+?)\}\}", re.DOTALL)


class BadTemplate(Exception):
    """The expression is none of the forms above."""


@dataclass(frozen=True)
class Context:
    """What an expression may speak of. `groups` are the numbered and named groups of the script's `match`."""

    user: str = ""
    model: str = ""
    turn: int = 0
    results: Sequence[Result] = ()
    groups: Mapping[int | str, str] = field(default_factory=dict)


def render(value: object, context: Context) -> object:
    """`value` with every template in its strings filled in; lists and mappings are walked.

    Raises: BadTemplate.
    """
    if isinstance(value, str):
        return _TEMPLATE.sub(lambda found: fill(found.group(1).strip(), context), value)
    if isinstance(value, Mapping):
        return {key: render(item, context) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [render(item, context) for item in value]
    return value


def check(value: object) -> None:
    """Refuses a value with a template that could not be filled in.

    Raises: BadTemplate.
    """
    if isinstance(value, str):
        for found in _TEMPLATE.finditer(value):
            fill(found.group(1).strip(), Context())
    elif isinstance(value, Mapping):
        check(list(value.values()))
    elif isinstance(value, list | tuple):
        for item in value:
            check(item)


def fill(expression: str, context: Context) -> str:
    """The text of one expression; a value or a search that finds nothing says so in the text.

    Raises: BadTemplate.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # `\\d` in a plain string is what people write in a regex
            tree = ast.parse(expression, mode="eval").body
        found = _evaluate(tree, context)
    except (SyntaxError, ValueError, re.error) as error:
        raise BadTemplate(f"cannot read the template {{{{ {expression} }}}}: {error}") from error
    return f"(nothing found for {expression})" if found is None else found


def _evaluate(node: ast.expr, context: Context) -> str | None:
    match node:
        case ast.BinOp(left=value, op=ast.BitOr(), right=ast.Name(id=name)):
            return _filter(name, [], _evaluate(value, context))
        case ast.BinOp(left=value, op=ast.BitOr(), right=ast.Call(func=ast.Name(id=name), args=args)):
            return _filter(name, [_literal(arg) for arg in args], _evaluate(value, context))
        case ast.Attribute(value=ast.Subscript(value=ast.Name(id="results"), slice=place), attr=attribute):
            return _result(context.results, _number(place), attribute)
        case ast.Subscript(value=ast.Name(id="match"), slice=place):
            return context.groups.get(_place(place))
        case ast.Name(id="user"):
            return context.user
        case ast.Name(id="model"):
            return context.model
        case ast.Name(id="turn"):
            return str(context.turn)
    raise ValueError("it is no known value or filter (see localstack/scripted/README.md)")


def _result(results: Sequence[Result], place: int, attribute: str) -> str | None:
    if attribute not in ("text", "name"):
        raise ValueError(f"a result has text and name, not {attribute!r}")
    if not -len(results) <= place < len(results):
        return None
    return results[place].text if attribute == "text" else results[place].name


def _filter(name: str, arguments: list[str], value: str | None) -> str | None:
    match name, arguments:
        case "default", [text]:
            return text if value is None else value
        case "search", [pattern]:
            found = re.compile(pattern, re.MULTILINE).search(value or "")
            return None if found is None else (found.group(1) if found.groups() else found.group())
        case "trim", []:
            return None if value is None else value.strip()
        case "times", [number]:
            return None if value is None else value * int(number)
        case "first_line" | "last_line", []:
            lines = (value or "").strip().splitlines()
            return lines[0 if name == "first_line" else -1] if lines else None
    raise ValueError(f"unknown filter {name!r} with {len(arguments)} arguments")


def _literal(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    raise ValueError("a filter takes quoted texts only")


def _number(node: ast.expr) -> int:
    place = _place(node)
    if isinstance(place, int):
        return place
    raise ValueError("results are counted by number: results[0], results[-1]")


def _place(node: ast.expr) -> int | str:
    match node:
        case ast.Constant(value=int() | str() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)):
            return -value
    raise ValueError("an index is a number or a quoted name")
