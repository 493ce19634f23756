"""A long answer: whole where it is read whole, cut between characters where it is previewed."""

import pytest

from tests.integration.runs.person import Person

pytestmark = pytest.mark.timeout(120, func_only=True)


@pytest.mark.req("NOD-065", "NOD-067", "NOD-474", "NOD-592")
def test_ten_thousand_bytes_of_four_byte_characters(person: Person) -> None:
    person.agent("verbose")
    run = person.start("verbose", "Draw 2,500 faces.")
    early = person.call("GET", f"{run.path}/answer")
    assert (early.status_code, early.json()["reason"]) == (409, "AnswerNotReady")
    status = run.succeeded()
    answer = run.answer()
    assert answer.encode() == ("a" + "🙂" * 2499 + "xyz").encode()
    preview = status["answer"]["preview"]
    # One byte and four-byte characters: 4,096 bytes would cut a character.
    assert len(preview.encode()) == 4093
    assert answer.startswith(preview)
