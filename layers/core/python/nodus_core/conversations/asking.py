"""Asking a running daemon something, and waiting for its answer (decision 21).

place the ask ─► ring ─► look for its answer with a growing interval ─► take it
                            └─ nothing in time: the ask is taken back
"""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from nodus_core.conversations.bells import ring
from nodus_core.journal.asks import PLACES
from nodus_core.journal.journal import Journal
from nodus_core.journal.ports import Bell, Clock
from nodus_core.kernel import ids
from nodus_core.kernel.errors import ConditionFailed, Refusal
from nodus_core.kernel.objects import SANDBOX
from nodus_core.kernel.sandboxes import Ask, Sandbox
from nodus_core.kernel.states import SandboxState

WAIT_S = 10
"""Seconds for which an answer is waited for, where a question says nothing else."""

MOST_WAIT_S = 24
"""API Gateway ends a call after 30 s."""

FIRST_INTERVAL_S = 0.02
LAST_INTERVAL_S = 0.25

TRIES = 4
"""How often a free place is looked for before the sandbox counts as too busy."""

Answer = dict[str, Any]
"""What a daemon answers: `state` is `exited`, `failed` (nothing has changed) or `lost`, with `reason` and `message`.

It is the agent's word, whatever stands in it: whoever reads it checks each field.
"""


@dataclass(frozen=True)
class Question:
    """What is asked (docs/protocols.md §2, *Asks*).

    `key` is the same for a question that is asked again, so that what it changes is done once. `works`: asking it is
    work in the sandbox, which then is not idle. `wait_s`: seconds for which the answer is waited for. `places`: it takes
    one of the first so many places of the sandbox, and waits `patience_s` seconds for one.
    """

    kind: str
    request: dict[str, Any]
    key: str = ""
    works: bool = True
    wait_s: float = WAIT_S
    places: int = PLACES
    patience_s: float = 0


@dataclass(frozen=True)
class Asking:
    """The one use case of asks; it rings the daemon's bell itself."""

    journal: Journal
    bell: Bell
    clock: Clock

    def ask(self, name: str, machine: Sandbox, question: Question) -> Answer:
        """The daemon's answer. `name` is what people call the sandbox, `machine` its row, just read.

        Raises `Refusal`: `SandboxNotRunning` when the machine stops meanwhile, `TooManyRequests` when too many ask it
        at the same time, `ServiceUnavailable` when it says nothing in time; it may then still do what was asked.
        """
        ask = self._place(name, machine, question)
        ring(self.bell, machine)
        answer = self._wait(name, machine, ask)
        self._let_go(ask)
        if answer is None:
            message = f"Sandbox {name!r} has not answered within {question.wait_s:.0f} s; ask again"
            raise Refusal("ServiceUnavailable", message, kind=SANDBOX, name=name, retry_after=1)
        return answer

    def _place(self, name: str, machine: Sandbox, question: Question) -> Ask:
        fresh = ids.digest(self.journal.writer.ids.fresh("ask"))
        gives_up, attempt = self.clock.now() + timedelta(seconds=question.patience_s), 0
        while True:
            now = self.clock.now()
            taken = {each.place for each in self.journal.asks_of(machine.id) if each.ends_at >= now}
            free = [place for place in range(question.places) if place not in taken]
            if free:
                place = free[(int(fresh[:8], 16) + attempt) % len(free)]
                ask = _made(machine.id, place, fresh, question, now)
                if self._is_placed(name, ask, now, works=question.works):
                    return ask
                attempt += 1
                if attempt < TRIES:
                    continue
            if now >= gives_up:
                break
            self.clock.sleep(LAST_INTERVAL_S)
        message = f"Sandbox {name!r} is asked too much at the same time ({question.places} questions wait); ask again"
        raise Refusal("TooManyRequests", message, kind=SANDBOX, name=name, retry_after=1)

    def _is_placed(self, name: str, ask: Ask, now: datetime, *, works: bool) -> bool:
        """Places it; False: somebody else was quicker."""
        try:
            self.journal.asks.place(ask, now, works=works)
        except ConditionFailed as lost:
            if 1 in lost.current:
                raise stands_still(name) from None
            return False
        return True

    def _wait(self, name: str, machine: Sandbox, ask: Ask) -> Answer | None:
        rung, interval = machine.connection, FIRST_INTERVAL_S
        while True:
            head, answer = self.journal.heard(ask.sandbox, ask.place)
            if answer is not None and answer.id == ask.id:
                return _fields(answer.result)
            if head is None or head.state is not SandboxState.RUNNING:
                self._let_go(ask)
                raise stands_still(name)
            if self.clock.now() >= ask.ends_at:
                return None
            if head.connection != rung:  # it may have pulled just before the ask was there
                ring(self.bell, head)
                rung = head.connection
            self.clock.sleep(interval)
            interval = min(interval * 1.5, LAST_INTERVAL_S)

    def _let_go(self, ask: Ask) -> None:
        try:
            self.journal.asks.take(ask.sandbox, ask.place, ask.id)
        except ConditionFailed:
            return  # its time was over, and another one stands there


def _made(sandbox: str, place: int, fresh: str, question: Question, now: datetime) -> Ask:
    return Ask(
        sandbox=sandbox,
        place=place,
        id=ids.ask_id(place, fresh),
        kind=question.kind,
        request=json.dumps(question.request, ensure_ascii=False, separators=(",", ":")),
        ends_at=now + timedelta(seconds=question.wait_s),
        key=question.key,
    )


def stands_still(name: str) -> Refusal:
    """The refusal of what needs a machine that runs."""
    message = f"Sandbox {name!r} does not run any more, and can be asked nothing"
    return Refusal("SandboxNotRunning", message, kind=SANDBOX, name=name)


def _fields(result: str) -> Answer:
    try:
        values = json.loads(result)
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}
