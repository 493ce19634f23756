"""Messages to a run: when they are sent, how often, and what came of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx2

from tests.crash.campaign.door import Door, reason_of, told
from tests.crash.campaign.ledger import FINAL, Prompt, RunRecord
from tests.crash.campaign.plans import Message, Plan, prompt

ENDED = "AgentRunFinished"


class Talk:
    """Somebody who goes on with a conversation.

    Args:
        cancel: cancels the run.
    """

    def __init__(self, door: Door, run: RunRecord, what: Plan, cancel: Callable[[], None]) -> None:
        self._door = door
        self._run = run
        self._what = what
        self._cancel = cancel
        self._left = list(what.messages)
        self._last_at = run.started_at

    def go_on(self) -> None:
        """Does the next thing if it is time for it: looks at an answer, sends a message, or ends the run."""
        if self._run.at_rest:
            self._see_answer()
        if self._left and self._is_due(self._left[0]):
            self._send_next()
        elif not self._left and self._what.cancel_at == "rest" and self._run.at_rest:
            self._cancel()

    def _is_due(self, message: Message) -> bool:
        return time.time() >= self._last_at + message.after_s and (self._run.at_rest or not message.at_rest)

    def _see_answer(self) -> None:
        """Nothing is sent meanwhile, so it is that of the last turn."""
        number = len(self._run.turns)
        if number not in self._run.answers:
            answer = self._door.call("GET", f"agentruns/{self._run.name}/answer")
            if answer is not None:
                self._run.answers[number] = answer.text

    def _send_next(self) -> None:
        message = self._left.pop(0)
        key = f"message-{len(self._run.prompts)}"
        sent = prompt(self._run.mark, str(len(self._run.prompts) + 1), message.waves, message.pauses, key)
        self._run.prompts.append(sent)
        with ThreadPoolExecutor(max_workers=3) as pool:
            if not self._left and self._what.cancel_at == "last":
                pool.submit(self._cancel)
            answers = list(pool.map(self._post, [sent] * (2 if message.sent == "twice" else 1)))
        if message.sent == "again":
            answers.append(self._post(sent))
        for answer in answers:
            self._note(sent, answer)
        self._last_at = time.time()

    def _post(self, sent: Prompt) -> httpx2.Response | None:
        body = {"payload": sent.text, "messageKey": sent.key}
        return self._door.call("POST", f"agentruns/{self._run.name}/messages", body)

    def _note(self, sent: Prompt, answer: httpx2.Response | None) -> None:
        """What one sender was told; all of one message are told the same."""
        if answer is None:
            return
        sent.posts += 1
        if answer.status_code in (200, 202):
            turn = answer.json()["turn"]
            if sent.refused or sent.turn not in (None, turn):
                self._run.trouble.append(
                    f"{sent.key}: turn {turn} after {sent.turn}, refused: {sent.refused}"
                )
            sent.turn = turn
        elif answer.status_code == 409 and reason_of(answer) == ENDED and sent.turn is None:
            sent.refused = True
            self._check_ending(sent)
        else:
            self._run.trouble.append(f"{sent.key}, turn {sent.turn}: {told(answer)}")

    def _check_ending(self, sent: Prompt) -> None:
        """A message is refused by a run that has ended, or is shown to be ending."""
        answer = self._door.call("GET", f"agentruns/{self._run.name}")
        if answer is None:
            return
        status = answer.json()["status"]
        overdue = self._run.deadline is not None and time.time() >= self._run.deadline
        if status["phase"] not in FINAL and status.get("reason") != "Cancelling" and not overdue:
            self._run.trouble.append(f"{sent.key} was refused while the run was {status}")
