"""The receipt of a call fits into its row, whatever people have written into what it answers."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from nodus_core.conversations.promises import Promise, first_outcome, receipt_of
from nodus_core.journal.codec import from_row
from nodus_core.journal.receipts import remember
from nodus_core.kernel.objects import Object, ObjectKey, Receipt, Turn
from nodus_core.kernel.projection import (
    MOST_TURNS,
    MOST_UNDELIVERED,
    MOST_UNRESOLVED,
    Status,
    queued,
    undelivered,
    waiting,
    working,
)
from nodus_core.kernel.states import TurnState
from nodus_core.kernel.text import Inline
from nodus_core.resources.manifest import Manifest
from nodus_core.resources.metadata import Metadata

from tests.bench.units import size

NOW = datetime(2030, 1, 1, tzinfo=UTC)
KEY = ObjectKey("acme", "web", "AgentRun", "hello-run")
LARGEST_ROW = 400 * 1024
PREVIEW = 1024


def fullest(text: str) -> Status:
    """The largest status of a run: all that people and commands have written into it is `text`."""
    status = queued(1, Decimal(5))
    for number in range(1, MOST_TURNS + 1):
        status = working(status, Turn("conv", number, number, f"conv-{number}", TurnState.OPEN, text, NOW))
    entry = {"step": "turn-1.tool.run_command.1", "what": "OutcomeUnknown", "input": text}
    status = waiting(status, "NeedsResolution", text, [entry] * MOST_UNRESOLVED)
    return undelivered(status, [text[:128]] * MOST_UNDELIVERED, MOST_UNDELIVERED, "Cancelled")


@pytest.mark.req("FLD-16")
@pytest.mark.parametrize(
    "text",
    ["\U0001f600" * (PREVIEW // 4), "\x01" * PREVIEW, '"' * PREVIEW],
    ids=["emoji", "control", "quotes"],
)
def test_the_receipt_of_the_fullest_status_fits_into_its_row(text: str) -> None:
    obj = Object(KEY, "run-1", 7, 1, Inline("{}"), NOW, fullest(text))
    receipt = receipt_of(Promise("key", "digest"), obj, NOW)
    row = remember(receipt, NOW).row
    assert size(row) < LARGEST_ROW
    again = first_outcome(from_row(Receipt, row), KEY, Manifest("AgentRun", Metadata("hello-run"), {}))
    assert (again.uid, again.version, again.created_at) == ("run-1", 7, NOW)
    assert again.status == obj.status


@pytest.mark.req("FLD-16")
def test_a_receipt_of_an_earlier_release_is_still_read() -> None:
    obj = Object(KEY, "run-1", 7, 1, Inline("{}"), NOW)
    receipt = receipt_of(Promise("key", "digest"), obj, NOW)
    old = replace(receipt, facts=receipt.facts[:-1] + ', "status": {"phase": "Queued"}}')
    again = first_outcome(old, KEY, Manifest("AgentRun", Metadata("hello-run"), {}))
    assert again.status == {"phase": "Queued"}
