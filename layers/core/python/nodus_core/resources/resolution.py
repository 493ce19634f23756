"""The body of `POST …/resolution`: what a person says of a step whose outcome is not known (NODQ-55)."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from nodus_core.resources.document import canonical
from nodus_core.resources.fields import Prompt, RequestKey, Spec, Str, Whole, misplaced, not_blank
from nodus_core.resources.manifest import read_body

KIND = "Resolution"
LONGEST_STEP = 512
"""Characters of a step's name."""
LARGEST_EXIT_CODE = 255


class StatedResult(Spec):
    """What a step that happened came to, as the person knows it."""

    text: Prompt | None = Field(
        default=None,
        description="What the step gave, at most 256 KiB; required of a model's call, of which it is the reply.",
    )
    exit_code: Annotated[Whole, Field(ge=0, le=LARGEST_EXIT_CODE)] | None = Field(
        default=None,
        description="Exit code of a command or of the setup, which needs it; refused with other steps.",
    )


class Stated(Spec):
    """A person's word on one step."""

    step: Annotated[Str, not_blank, Field(max_length=LONGEST_STEP)] = Field(
        description="Name of the step, as `status.unresolved` and the list of steps have it."
    )
    outcome: Literal["Happened", "DidNotHappen"] = Field(
        description="`Happened`: the run goes on with `result`. `DidNotHappen`: it does the step again."
    )
    request_key: RequestKey = Field(
        description="Key of the statement, 1 to 128 bytes, known for a day: made again with it, the same one gets the "
        "first answer, and another is refused with IdempotencyKeyConflict."
    )
    result: StatedResult | None = Field(
        default=None, description="What came of it, as far as that is known. Only with `Happened`."
    )

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
    return read_body(Stated, KIND, body)
