"""Lifecycle events on the EventBridge bus."""

import json
from collections.abc import Sequence
from typing import Any

from nodus_core.aws.failures import translated
from nodus_core.aws.patience import Patience
from nodus_core.journal.ports import Event
from nodus_core.kernel.errors import RetryableError

SOURCE = "nodus"
BATCH = 10
"""Entries in one PutEvents (its limit)."""


class EventBridgeEvents:
    """`Events` on one bus. `client` is botocore's for EventBridge."""

    def __init__(self, client: Any, bus: str, patience: Patience | None = None) -> None:
        """`bus` is the bus's name or ARN."""
        self._client = client
        self._bus = bus
        self._patience = patience or Patience(tries=4, seconds=5.0)

    def put(self, events: Sequence[Event]) -> None:
        entries = [self._entry(event) for event in events]
        for start in range(0, len(entries), BATCH):
            self._put_batch(entries[start : start + BATCH])

    def _put_batch(self, entries: list[dict[str, Any]]) -> None:
        # A 200 may refuse any of the entries: only FailedEntryCount tells.
        refusals: list[str] = []
        for _ in self._patience.attempts():
            with translated(f"putting {len(entries)} events on {self._bus}"):
                answer = self._client.put_events(Entries=entries)
            if not answer["FailedEntryCount"]:
                return
            refused = [
                (entry, f"{outcome['ErrorCode']}: {outcome.get('ErrorMessage', '')}")
                for entry, outcome in zip(entries, answer["Entries"], strict=True)
                if outcome.get("ErrorCode")
            ]
            entries = [entry for entry, _ in refused]
            refusals = [refusal for _, refusal in refused]
        raise RetryableError(
            f"bus {self._bus} refused {len(entries)} events,"
            f" the first of type {entries[0]['DetailType']}: {refusals[0]}"
        )

    def _entry(self, event: Event) -> dict[str, Any]:
        entry: dict[str, Any] = {
            "EventBusName": self._bus,
            "Source": SOURCE,
            "DetailType": event.type,
            "Detail": json.dumps(event.detail),
        }
        return entry if event.at is None else {**entry, "Time": event.at}
