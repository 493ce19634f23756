"""An answer that is not the service's is no answer: the same call may succeed later."""

import pytest
from botocore.parsers import ResponseParserError
from nodus_core.aws.failures import translated
from nodus_core.kernel.errors import StoreUnavailable


def test_an_answer_that_cannot_be_read_may_be_asked_for_again() -> None:
    with (
        pytest.raises(
            StoreUnavailable, match="reading payload p: an answer that cannot be read: not well-formed"
        ),
        translated("reading payload p", StoreUnavailable),
    ):
        raise ResponseParserError("not well-formed")
