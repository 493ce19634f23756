"""The body of `POST …/resolution`: what a person says of a step whose outcome is not known (NODQ-55)."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, ValidationError, model_validator

from nodus_core.resources.document import canonical
from nodus_core.resources.fields import Prompt, RequestKey, Spec, Str, Whole, misplaced, not_blank
from nodus_core.resources.manifest import without_nulls
from nodus_core.resources.refusals import refusal

KIND = "Resolution"
LONGEST_STEP = 512
"""Characters of a step's name."""
LARGEST_EXIT_CODE = 255


class StatedResult(Spec):
    """What a step that happened came to, as the person knows it. `exit_code` is a command's."""

    text: Prompt | None = None
    exit_code: Annotated[Whole, Field(ge=0, le=LARGEST_EXIT_CODE)] | None = None


class Stated(Spec):
    """A person's word on one step. `step` is its name, as the step list has it."""

    step: Annotated[Str, AfterValidator(not_blank), Field(max_length=LONGEST_STEP)]
    outcome: Literal["Happened", "DidNotHappen"]
    request_key: RequestKey
    result: StatedResult | None = None

    @model_validator(mode="after")
    def _of_what_happened(self) -> Self:
        if self.result is not None and self.outcome != "Happened":
            raise misplaced("result", "goes only with outcome Happened")
        return self

    def meaning(self) -> str:
        """A text that is the same for statements that mean the same."""
        return canonical(self.model_dump(by_alias=True, exclude_none=True, exclude={"request_key"}))


def read_resolution(body: Mapping[str, Any]) -> Stated:
    """The statement in a request body. Raises `Refusal` `Invalid` or `PayloadTooLarge`, naming the fields."""
    try:
        return Stated.model_validate(without_nulls(body))
    except ValidationError as error:
        raise refusal(error, Stated, KIND, None, root="") from None
