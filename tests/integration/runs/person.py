"""Somebody who uses Nodus over REST, with no more rights than a key gives."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from typing import Any

import httpx2
import yaml

from localstack.testing import TestCloud
from tests.integration.waiting import until

Shown = dict[str, Any]

FINAL = ("Succeeded", "Failed", "Cancelled")
APPLY = "application/apply-patch+yaml"
SONNET = {"access": "OnDemand", "name": "anthropic/claude-sonnet-5-5"}
OPEN_MODEL = {"access": "OnDemand", "name": "openai/gpt-oss-20b"}


class Person:
    """REST calls with the key of the cloud's client configuration, which is read anew for each."""

    def __init__(self, cloud: TestCloud) -> None:
        self.cloud = cloud
        self.http = httpx2.Client(timeout=60, follow_redirects=False)
        self._made: list[str] = []

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        kind: str = "application/json",
        idempotency_key: str | None = None,
    ) -> httpx2.Response:
        """One request below the project's base; `body` is sent as JSON unless it is a text."""
        context = yaml.safe_load(self.cloud.configuration.read_text())["contexts"]["local"]
        url = f"{context['server']}/apis/nodus.dev/v1/namespaces/default/{path}"
        headers = {"Authorization": f"Bearer {context['token']}"}
        if idempotency_key is not None:
            headers["Idempotency-Key"] = idempotency_key
        if body is None:
            return self.http.request(method, url, headers=headers)
        content = body if isinstance(body, str) else json.dumps(body)
        return self.http.request(method, url, headers={**headers, "Content-Type": kind}, content=content)

    def agent(self, name: str, **spec: Any) -> Shown:
        """Applies an agent; one without a model gets an On Demand one, which saves the routing call."""
        full = manifest("Agent", name, {"model": SONNET, **spec})
        answer = self.call("PATCH", f"agents/{name}", full, kind=APPLY)
        assert answer.status_code in (200, 201), answer.text
        return answer.json()

    def start(self, agent: str, prompt: str, **spec: Any) -> Run:
        """Creates a run; `prompt` gets a mark of its own in front."""
        mark = secrets.token_hex(4)
        name = f"{agent[:40]}-{mark}"
        full = manifest("AgentRun", name, {"agent": agent, "input": f"[{mark}] {prompt}", **spec})
        answer = self.call("POST", "agentruns", full)
        assert answer.status_code == 201, answer.text
        self._made.append(name)
        return Run(self, name, mark, answer.json()["metadata"]["uid"])

    def leave(self) -> None:
        """Deletes the runs that were started, whatever they do: none may go on using the machine."""
        for name in self._made:
            self.call("DELETE", f"agentruns/{name}")
        self.http.close()


class Run:
    """One run as it is shown."""

    def __init__(self, person: Person, name: str, mark: str, uid: str) -> None:
        self.person, self.name, self.mark, self.uid = person, name, mark, uid

    @property
    def path(self) -> str:
        return f"agentruns/{self.name}"

    def status(self) -> Shown:
        answer = self.person.call("GET", self.path)
        assert answer.status_code == 200, answer.text
        return answer.json()["status"]

    def ended(self) -> Shown:
        """The status once its phase is final."""
        return until(self.status, lambda status: status["phase"] in FINAL)

    def succeeded(self) -> Shown:
        """The status of a run that must come to a good end."""
        status = self.ended()
        assert status["phase"] == "Succeeded", (status, self.steps())
        return status

    def cleared(self) -> Shown:
        """The status once the run has ended and its sandbox is gone."""
        self.ended()
        return until(self.status, lambda status: status["sandbox"]["phase"] == "Deleted")

    def waits(self, reason: str) -> Shown:
        """The status once the run waits for that reason; ending instead fails."""
        status = until(self.status, lambda seen: seen.get("reason") == reason or seen["phase"] in FINAL)
        assert (status["phase"], status.get("reason")) == ("Waiting", reason), (status, self.steps())
        return status

    def steps(self) -> list[Shown]:
        answer = self.person.call("GET", f"{self.path}/steps?limit=500")
        assert answer.status_code == 200, answer.text
        return answer.json()["items"]

    def step(self, name: str) -> Shown:
        """The one step of that name, or of that name behind the turn's."""
        (found,) = [step for step in self.steps() if step["name"] in (name, f"turn-1.{name}")]
        return found

    def reaches(self, name: str, *states: str) -> Shown:
        """The step once it is there, in one of the states if any are given. An ended run fails the test."""

        def look() -> tuple[Shown | None, str]:
            phase = self.status()["phase"]
            found = [step for step in self.steps() if step["name"] in (name, f"turn-1.{name}")]
            return (found[0] if found else None), phase

        def there(seen: tuple[Shown | None, str]) -> bool:
            step, phase = seen
            if step is not None and (not states or step["state"] in states):
                return True
            assert phase not in FINAL, (phase, self.steps())
            return False

        step, _ = until(look, there)
        assert step is not None
        return step

    def answer(self) -> str:
        answer = self.person.call("GET", f"{self.path}/answer")
        assert answer.status_code == 200, answer.text
        return answer.content.decode()

    def say(self, text: str, key: str) -> httpx2.Response:
        """Posts a message, which carries the run's mark."""
        body = {"payload": f"[{self.mark}] {text}", "messageKey": key}
        return self.person.call("POST", f"{self.path}/messages", body)

    def cancel(self) -> None:
        assert self.person.call("POST", f"{self.path}/cancel").status_code in (200, 202)


def manifest(kind: str, name: str, spec: Shown) -> Shown:
    return {"apiVersion": "nodus.dev/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def in_turn(*commands: str) -> str:
    """A prompt for commands one after the other; the answer is the last one's output (`shell.yaml`)."""
    return "In turn:\n" + _lines(commands)


def at_once(*commands: str) -> str:
    """A prompt for commands of one message."""
    return "At once:\n" + _lines(commands)


def _lines(commands: Sequence[str]) -> str:
    return "\n".join(f"$ {command}" for command in commands)


def names(steps: Sequence[Shown]) -> list[str]:
    """The steps' names without their turn."""
    return [step["name"].removeprefix("turn-1.") for step in steps]
