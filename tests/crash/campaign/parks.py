"""Runs that ask what became of a command: whether they may, and what they are told."""

from __future__ import annotations

import threading
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from tests.crash.campaign.door import Door, told
from tests.crash.campaign.effects import Effects
from tests.crash.campaign.journal import CloudJournal
from tests.crash.campaign.ledger import RunRecord, Uncertain

LOOK_S = 1.0


class Parks:
    """Somebody who looks at the world outside and says what became of a command."""

    def __init__(self, door: Door, journal: CloudJournal, effects: Effects, over: threading.Event) -> None:
        self._door = door
        self._journal = journal
        self._effects = effects
        self._over = over

    def look(self, run: RunRecord) -> None:
        """Notes what the journal says of each command that the run asks about."""
        run.parked = True
        known = {(each.step, each.since) for each in run.uncertain}
        for entry in run.status.get("unresolved", []):
            if (entry["step"], entry["since"]) not in known:
                run.uncertain += self._uncertain(run, entry)

    def resolve(self, run: RunRecord) -> None:
        """Says of each command what the files outside say."""
        for number, each in enumerate(run.uncertain):
            if each.outcome is None:
                self._say(run, each, f"{run.mark}-{number}")

    def _uncertain(self, run: RunRecord, entry: dict[str, Any]) -> list[Uncertain]:
        """As soon as there is a cloud to ask; none when the campaign is over."""
        while not self._over.is_set():
            try:
                return [self._journal.uncertain(run, entry)]
            except (BotoCoreError, ClientError, OSError):
                self._over.wait(LOOK_S)
        return []

    def _say(self, run: RunRecord, asked: Uncertain, key: str) -> None:
        happened = self._effects.outside().count(asked.token) > 0
        body: dict[str, Any] = {"step": asked.step, "requestKey": key}
        if happened:
            body |= {"outcome": "Happened", "result": {"text": f"{asked.token}\n", "exitCode": 0}}
        else:
            body |= {"outcome": "DidNotHappen"}
        answer = self._door.call("POST", f"agentruns/{run.name}/resolution", body)
        if answer is None:
            return
        if answer.status_code == 202:
            asked.outcome = body["outcome"]
        elif answer.status_code != 409 or not (
            run.cancel_asked or run.deadline
        ):  # a stop may have come first
            run.trouble.append(f"{asked.step} was not resolved: {told(answer)}")
