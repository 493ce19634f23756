"""Calls of somebody who does not give up: one that gets no answer, or a passing one, is made again as it was."""

from __future__ import annotations

import threading
from typing import Any

import httpx2

from localstack.testing import TestCloud
from tests.integration.runs.person import Person

AGAIN = frozenset({429, 500, 502, 503, 504})
"""Answers after which the same call is made again; a lost answer is as good as none."""

PAUSE_S = 0.5


class Door:
    """REST as a person meets it, until `over` is set; safe for threads."""

    def __init__(self, cloud: TestCloud, over: threading.Event) -> None:
        self.person = Person(cloud)
        self._over = over

    def close(self) -> None:
        self.person.http.close()

    def call(
        self, method: str, path: str, body: Any = None, *, key: str | None = None
    ) -> httpx2.Response | None:
        """The answer; None when the campaign is over."""
        while not self._over.is_set():
            try:
                answer = self.person.call(method, path, body, idempotency_key=key)
            except httpx2.HTTPError:
                answer = None
            if answer is not None and answer.status_code not in AGAIN:
                return answer
            self._over.wait(PAUSE_S)
        return None


def told(answer: httpx2.Response | None) -> str:
    """An answer in words."""
    return "no answer" if answer is None else f"{answer.status_code} {answer.text[:300]}"


def reason_of(answer: httpx2.Response) -> str | None:
    """The reason word of a refusal."""
    return answer.json().get("reason")
