"""From what pydantic found wrong to a refusal that names each field and says what to do; values are never echoed."""

import difflib
import types
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from nodus_core.kernel.errors import MOST_CAUSES, Cause, Reason, Refusal
from nodus_core.resources.document import below

_KEY = "[key]"
"""What pydantic puts behind the name of a field that is itself what is wrong."""

_WORDS = {
    "missing": "is required",
    "string_type": "must be a text",
    "int_type": "must be a whole number",
    "bool_type": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must hold fields",
    "model_type": "must hold fields",
    "model_attributes_type": "must hold fields",
}
_REASONS = {
    "missing": "FieldValueRequired",
    "extra_forbidden": "FieldValueUnknown",
    "too_large": "FieldValueTooLong",
}
_WHOLE_REASON: dict[str, Reason] = {
    "too_large": "PayloadTooLarge",
    "coming_soon": "ComingSoon",
}


def refusal(
    error: ValidationError, model: type[BaseModel], kind: str, name: str | None, *, root: str = "spec"
) -> Refusal:
    """The refusal of an object of `kind`; `root` is the path of what `model` describes.

    Its reason is `Invalid`, or `ComingSoon` (NODQ-29) or `PayloadTooLarge` when that is the first thing wrong.
    """
    details = error.errors(include_url=False, include_input=False)
    causes = tuple(_cause(item, model, root) for item in details[:MOST_CAUSES])
    reason = _WHOLE_REASON.get(details[0]["type"], "Invalid")
    return invalid(kind, name, causes, reason=reason)


def invalid(kind: str, name: str | None, causes: tuple[Cause, ...], *, reason: Reason = "Invalid") -> Refusal:
    """A refusal of an object, with a message that a person can act on."""
    what = f"{kind} {name!r}" if name else kind
    listed = "; ".join(f"{cause.field} {cause.message}" for cause in causes[:MOST_CAUSES])
    return Refusal(reason, f"{what} is not accepted: {listed}", causes=causes, kind=kind, name=name)


def unknown_fields(
    given: Mapping[str, Any], known: tuple[str, ...], path: str, ignored: tuple[str, ...] = ()
) -> Iterator[Cause]:
    """What is wrong with the fields that are none; `ignored` ones are taken and not offered.

    No more of them than are shown, for to look for what was meant is slow.
    """
    unknown = (key for key in given if key not in known and key not in ignored)
    for key in islice(unknown, MOST_CAUSES):
        yield Cause(below(path, key), f"is no field{suggestion(key, list(known))}", "FieldValueUnknown")


def of_item(number: int, refusal: Refusal) -> Refusal:
    """The refusal of a list because of one of its items, which it names."""
    item = f"items[{number}]"
    causes = tuple(Cause(f"{item}.{cause.field}", cause.message, cause.reason) for cause in refusal.causes)
    message = f"{item}: {refusal.message}; nothing was created"
    named = causes or (Cause(item, refusal.message),)
    return Refusal(refusal.reason, message, causes=named, kind=refusal.kind, name=refusal.name)


def _cause(item: Any, model: type[BaseModel], root: str) -> Cause:
    loc: tuple[str | int, ...] = item["loc"]
    context: dict[str, Any] = item.get("ctx") or {}
    kind: str = item["type"]
    if kind == "misplaced":
        loc = (*loc, context["field"])
    reason = _REASONS.get(kind, "FieldValueInvalid")
    return Cause(_path(loc, root), _message(kind, item["msg"], context, loc, model), reason)


def _message(
    kind: str, said: str, context: dict[str, Any], loc: tuple[str | int, ...], model: type[BaseModel]
) -> str:
    match kind:
        case "extra_forbidden":
            return f"is no field{suggestion(str(loc[-1]), _fields_at(model, loc[:-1]))}"
        case "literal_error":
            return f"must be {context['expected']}"
        case "greater_than_equal":
            return f"must be at least {context['ge']}"
        case "less_than_equal":
            return f"must be at most {context['le']}"
        case "too_short":
            return f"must have at least {context['min_length']} entry"
        case "too_long":
            return f"must have at most {context['max_length']} entries"
        case "string_too_long":
            return f"must have at most {context['max_length']} characters"
        case _:
            return _WORDS.get(kind, said)


def suggestion(word: str, known: list[str]) -> str:
    """The field that was probably meant, or all that there are (NODQ-61)."""
    near = difflib.get_close_matches(word[:80], known, n=1) or [
        field for field in known if field.lower() == word.lower()
    ]
    if near:
        return f"; did you mean {near[0]}?"
    return f"; fields are {', '.join(known)}" if known else ""


def _path(loc: tuple[str | int, ...], root: str) -> str:
    path = root
    for part in loc:
        if part != _KEY:
            path = f"{path}[{part}]" if isinstance(part, int) else below(path, part)
    return path


def _fields_at(model: type[BaseModel], loc: tuple[str | int, ...]) -> list[str]:
    here: type[BaseModel] | None = model
    for part in loc:
        if here is None or isinstance(part, int):
            continue
        found = [field for field in here.model_fields.values() if field.alias == part]
        here = _model_in(found[0].annotation) if found else None
    return [] if here is None else [str(field.alias or name) for name, field in here.model_fields.items()]


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model that a field's type holds, through optionals and lists."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (Union, types.UnionType, list, Annotated):
        return next((found for found in map(_model_in, get_args(annotation)) if found), None)
    return None
