"""Daemons of a property test: commands last some looks, end when asked, and answers that are lost are asked for."""

import json
from typing import Any

from nodus_core.journal.sandboxes import Greeting
from nodus_core.kernel.errors import Refusal, RetryableError
from nodus_core.kernel.ids import digest
from nodus_core.sandboxes.link import Link
from nodus_core.testing.scripted_sandbox import Daemon, ScriptedSandboxes, exited

from tests.property.scenario import DEADLY, FORGOTTEN


class Daemons(ScriptedSandboxes):
    """A command `[index, ticks, code]` lasts `ticks` looks and exits with `code`; any other ends at once."""

    def __init__(self) -> None:
        super().__init__(lambda kind, request: exited())
        self.running: dict[tuple[str, str], tuple[int, dict[str, Any]]] = {}

    def turn(self) -> None:
        for daemon in list(self.daemons.values()):
            if not daemon.alive:
                continue
            try:
                self._look(daemon, self.link)
            except Refusal:
                daemon.alive = False
            except RetryableError:
                continue  # 503: it asks again at its next look

    def _look(self, daemon: Daemon, link: Link | None) -> None:
        assert link is not None
        if not daemon.up:
            greeting = Greeting(daemon.boot, digest(daemon.token), isolated=True, guard="network")
            link.hello(daemon.sandbox, greeting, daemon.code)
            daemon.up = True
        sandbox = link.authorize(daemon.sandbox, daemon.token)
        pulled = link.pull(sandbox, daemon.boot)
        daemon.alive = not pulled.stop
        for command, request in pulled.commands:
            if command.id not in daemon.known and (daemon.sandbox, command.id) not in self.running:
                self.effects.append((daemon.sandbox, command.id))
                self.running[daemon.sandbox, command.id] = _plan(json.loads(request))
                if self.running[daemon.sandbox, command.id][0] == DEADLY:
                    daemon.alive = False
                    return
                if self.running[daemon.sandbox, command.id][0] == FORGOTTEN:
                    del self.running[daemon.sandbox, command.id]
                    daemon.known[command.id] = {"state": "lost", "reason": "internal"}
        self._work(daemon, pulled.cancel)
        for command, _ in pulled.commands:
            if command.id in daemon.known:
                link.done(sandbox, daemon.boot, command.id, json.dumps(daemon.known[command.id]))

    def _work(self, daemon: Daemon, cancel: tuple[str, ...]) -> None:
        for (sandbox, name), (left, result) in list(self.running.items()):
            if sandbox != daemon.sandbox:
                continue
            if left > 0 and name not in cancel:
                self.running[sandbox, name] = left - 1, result
                continue
            daemon.known[name] = {**exited(code=143), "reason": "killed"} if name in cancel else result
            del self.running[sandbox, name]


def _plan(request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    command = str(request.get("command", ""))
    index, ticks, code = json.loads(command) if command.startswith("[") else (0, 0, 0)
    return ticks, exited(f"out {index}\n", code)
