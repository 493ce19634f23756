"""Somebody who starts a run, looks at it, talks to it, perhaps cancels it, and waits for its end."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from datetime import datetime

from localstack.testing import TestCloud
from tests.crash.campaign.door import Door, told
from tests.crash.campaign.effects import Effects
from tests.crash.campaign.journal import CloudJournal
from tests.crash.campaign.ledger import FINAL, RunRecord
from tests.crash.campaign.parks import Parks
from tests.crash.campaign.plans import AGENTS, Plan, prompt
from tests.crash.campaign.talks import Talk
from tests.integration.runs.person import manifest

LOOK_S = 2.0
"""Looks are calls of a function each: more of them would take the machine from the runs."""

ALLOWED_LOOKS = 450
"""Answered looks at a run within which it must end, whatever is done to the cloud: 15 minutes and more, as looks
are as slow as the cloud is. So neither a busy machine nor a cloud that is away is taken for a run that stands still."""


class Driver:
    """Takes runs from their creation to their end. Calls that get no answer are made again."""

    def __init__(self, cloud: TestCloud, effects: Effects, over: threading.Event) -> None:
        self._door = Door(cloud, over)
        self._parks = Parks(self._door, CloudJournal(cloud), effects, over)
        self._over = over

    def prepare(self) -> None:
        """Applies the agents."""
        for name, spec in AGENTS.items():
            self._door.person.agent(name, **spec)

    def close(self) -> None:
        self._door.close()

    def drive(self, what: Plan, note: Callable[[RunRecord], None]) -> None:
        """One run. `note` is told of it before it is created."""
        mark = secrets.token_hex(4)
        first = prompt(mark, "1", what.waves, what.pauses)
        run = RunRecord(what.kind, f"campaign-{mark}", mark, [first], time.time(), what.keep_alive)
        note(run)
        spec = {"agent": what.agent, "input": first.text, "keepAlive": what.keep_alive}
        if what.deadline_s is not None:
            spec["deadline"] = f"{what.deadline_s}s"
        answer = self._door.call("POST", "agentruns", manifest("AgentRun", run.name, spec), key=mark)
        if answer is None or answer.status_code != 201:
            run.trouble.append(f"it was not created: {told(answer)}")
            return
        made = answer.json()
        run.uid, first.turn = made["metadata"]["uid"], 1
        if what.deadline_s is not None:
            run.deadline = datetime.fromisoformat(made["spec"]["deadline"]).timestamp()
        self._follow(run, what)

    def _follow(self, run: RunRecord, what: Plan) -> None:
        talk = Talk(self._door, run, what, lambda: self._cancel(run))
        for _ in range(ALLOWED_LOOKS):
            if self._over.wait(LOOK_S):
                return
            self._look(run)
            if run.phase in FINAL:
                self._finish(run)
                return
            age = time.time() - run.started_at
            if what.cancel_after_s is not None and age >= what.cancel_after_s:
                self._cancel(run)
            if run.reason == "NeedsResolution":
                self._parks.look(run)
                if what.resolves:
                    self._parks.resolve(run)
                else:
                    self._cancel(run)
            talk.go_on()

    def _look(self, run: RunRecord) -> None:
        answer = self._door.call("GET", f"agentruns/{run.name}")
        if answer is None:
            return
        if answer.status_code != 200:
            run.trouble.append(f"it cannot be read: {told(answer)}")
            return
        steps = self._door.call("GET", f"agentruns/{run.name}/steps?limit=500")
        if steps is not None and steps.status_code != 200:
            run.trouble.append(f"its steps cannot be read: {told(steps)}")
            steps = None
        run.see(answer.json()["status"], steps and steps.json()["items"])

    def _finish(self, run: RunRecord) -> None:
        self._look(run)
        run.ended_at = time.time()
        if run.phase == "Succeeded":
            answer = self._door.call("GET", f"agentruns/{run.name}/answer")
            run.answers[len(run.turns)] = answer and answer.text

    def _cancel(self, run: RunRecord) -> None:
        """Asks for it once, until that is answered; 200: it had finished, perhaps by a call whose answer was lost."""
        if run.cancel_asked:
            return
        run.cancel_asked = True
        answer = self._door.call("POST", f"agentruns/{run.name}/cancel")
        if answer is None:
            return
        if answer.status_code == 202:
            run.cancel_accepted = True
        elif answer.status_code != 200:
            run.trouble.append(f"it was not canceled: {told(answer)}")
