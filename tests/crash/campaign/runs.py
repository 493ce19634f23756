"""Runs of a campaign: what they do, and somebody who starts one, looks at it, perhaps cancels it, and waits."""

from __future__ import annotations

import random
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx2
from botocore.exceptions import BotoCoreError, ClientError

from localstack.testing import TestCloud
from tests.crash.campaign.effects import effect
from tests.crash.campaign.journal import CloudJournal
from tests.crash.campaign.ledger import FINAL, FINAL_STEPS, RunRecord, Uncertain
from tests.integration.runs.person import SONNET, Person, manifest

ALLOWED_S = 900.0
"""Seconds within which a run must end, or ask, whatever is done to the cloud meanwhile."""

LOOK_S = 1.0
AGAIN = frozenset({429, 500, 502, 503, 504})
"""Answers after which the same call is made again; a lost answer is as good as none."""

AGENTS = {"campaign-fixed": {"model": SONNET}, "campaign-managed": {"model": {"access": "Nodus"}}}


@dataclass(frozen=True)
class Plan:
    """What a run shall do. `cancel_after_s`: somebody cancels it then."""

    kind: str
    agent: str
    words: str
    pauses: tuple[float, ...]
    cancel_after_s: float | None = None


def plan(dice: random.Random) -> Plan:
    """One of the kinds."""
    kind = dice.choices(("in turn", "at once", "canceled"), (5, 3, 2))[0]
    agent = dice.choice(sorted(AGENTS))
    words = "At once, slowly:" if kind == "at once" or dice.random() < 0.3 else "In turn, slowly:"
    pauses = tuple(dice.choice((0.0, 0.2, 1.0, 3.0, 8.0)) for _ in range(4))
    return Plan(kind, agent, words, pauses, dice.uniform(0.0, 15.0) if kind == "canceled" else None)


class Driver:
    """Takes runs from their creation to their end. Calls that get no answer are made again."""

    def __init__(self, cloud: TestCloud, over: threading.Event) -> None:
        self._person = Person(cloud)
        self._journal = CloudJournal(cloud)
        self._over = over

    def prepare(self) -> None:
        """Applies the agents."""
        for name, spec in AGENTS.items():
            self._person.agent(name, **spec)

    def close(self) -> None:
        self._person.http.close()

    def drive(self, what: Plan, note: Callable[[RunRecord], None]) -> None:
        """One run. `note` is told of it before it is created."""
        mark = secrets.token_hex(4)
        tokens = tuple(f"{mark}.{number}" for number in range(1, len(what.pauses) + 1))
        lines = [f"$ {effect(token, pause)}" for token, pause in zip(tokens, what.pauses, strict=True)]
        run = RunRecord(what.kind, f"campaign-{mark}", mark, tokens, time.time())
        note(run)
        spec = {"agent": what.agent, "input": "\n".join((f"[{mark}] {what.words}", *lines))}
        answer = self._call("POST", "agentruns", manifest("AgentRun", run.name, spec), key=mark)
        if answer is None or answer.status_code != 201:
            run.trouble.append(f"it was not created: {_told(answer)}")
            return
        run.uid = answer.json()["metadata"]["uid"]
        self._follow(run, what)

    def _follow(self, run: RunRecord, what: Plan) -> None:
        while not self._over.wait(LOOK_S):
            age = time.time() - run.started_at
            self._look(run)
            if run.phase in FINAL:
                self._finish(run)
                return
            if what.cancel_after_s is not None and age >= what.cancel_after_s and not run.cancel_accepted:
                self._cancel(run)
            if run.reason == "NeedsResolution" and not run.parked:
                run.parked = True
                run.uncertain = self._uncertain(run)
                self._cancel(run)
            if age > ALLOWED_S:
                return

    def _look(self, run: RunRecord) -> None:
        answer = self._call("GET", f"agentruns/{run.name}")
        if answer is None:
            return
        if answer.status_code != 200:
            run.trouble.append(f"it cannot be read: {_told(answer)}")
            return
        run.status = answer.json()["status"]
        steps = self._call("GET", f"agentruns/{run.name}/steps?limit=500")
        if steps is not None and steps.status_code == 200:
            run.steps = steps.json()["items"]
            for step in run.steps:
                if step["state"] in FINAL_STEPS:
                    run.seen.setdefault(step["name"], step)

    def _uncertain(self, run: RunRecord) -> list[Uncertain]:
        """What the journal says of what the run asks about, as soon as there is a cloud to ask."""
        while not self._over.wait(LOOK_S):
            try:
                return self._journal.uncertain(run)
            except (BotoCoreError, ClientError):
                continue
        return []

    def _finish(self, run: RunRecord) -> None:
        self._look(run)
        run.ended_at = time.time()
        if run.phase == "Succeeded":
            answer = self._call("GET", f"agentruns/{run.name}/answer")
            run.answer = answer.content.decode() if answer is not None and answer.status_code == 200 else None

    def _cancel(self, run: RunRecord) -> None:
        answer = self._call("POST", f"agentruns/{run.name}/cancel")
        if answer is None:
            return
        if answer.status_code == 202:
            run.cancel_accepted = True
        elif answer.status_code != 200:
            run.trouble.append(f"it was not canceled: {_told(answer)}")

    def _call(
        self, method: str, path: str, body: Any = None, *, key: str | None = None
    ) -> httpx2.Response | None:
        """The answer; None when the campaign is over."""
        while not self._over.is_set():
            try:
                answer = self._person.call(method, path, body, idempotency_key=key)
            except httpx2.HTTPError:
                answer = None
            if answer is not None and answer.status_code not in AGAIN:
                return answer
            self._over.wait(0.5)
        return None


def _told(answer: httpx2.Response | None) -> str:
    return "no answer" if answer is None else f"{answer.status_code} {answer.text[:300]}"
