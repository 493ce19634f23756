"""Checks of fields that say themselves what the published schema says of them, so that it is written once.

The words are those of JSON schema. They take whatever the check takes and may take more: what a schema cannot say
is refused by the check alone.
"""

import re
from collections.abc import Callable
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema


class Said:
    """What the published schema says of a type, beside what the type says: `Annotated[str, Said(maxLength=5)]`."""

    def __init__(self, **words: Any) -> None:
        self.words = words

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {**handler(schema), **self.words}


class Check(Said):
    """A check of a value that has its type already, and what the schema says of the values that pass."""

    def __init__(self, function: Callable[[Any], Any], **words: Any) -> None:
        super().__init__(**words)
        self.function = function

    def __call__(self, value: Any) -> Any:
        """The value, if it passes."""
        return self.function(value)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.function, handler(source))


def check(**words: Any) -> Callable[[Callable[[Any], Any]], Check]:
    """Makes a function a check whose schema says `words`."""
    return lambda function: Check(function, **words)


def whole(*patterns: re.Pattern[str]) -> str:
    """The pattern of texts that match one of `patterns` from beginning to end, as JSON schema writes it."""
    return f"^(?:{'|'.join(pattern.pattern for pattern in patterns)})$"
