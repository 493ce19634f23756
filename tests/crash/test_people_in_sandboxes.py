"""Whoever serves people in sandboxes dies at every commit: they ask again, and each thing was done once.

The API places commands and terminals beside a run's own, gives tickets and addresses of previews; the link lets in who
watches a terminal, and forgets who has left.
"""

import functools
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

import pytest
from nodus_core.access.door import Door, Place
from nodus_core.access.grant import Grant
from nodus_core.access.limits import Limits
from nodus_core.conversations.asking import Asking
from nodus_core.conversations.machines_seen import MachinesSeen
from nodus_core.conversations.sandbox_commands import SandboxCommands
from nodus_core.conversations.sandbox_previews import SandboxPreviews, Visit
from nodus_core.conversations.sandbox_terminals import SandboxTerminals
from nodus_core.conversations.shelf import Shelf
from nodus_core.journal.access import Access
from nodus_core.journal.journal import Journal
from nodus_core.journal.rates import Rates
from nodus_core.kernel.errors import Refusal
from nodus_core.kernel.ids import digest
from nodus_core.resources.sandbox_command import read_command
from nodus_core.resources.sandbox_preview import read_preview
from nodus_core.resources.sandbox_terminal import read_terminal
from nodus_core.sandboxes.relay import Relay
from nodus_core.testing.crash import Crash, CrashOnce
from nodus_core.testing.scripted_model import plays, says
from nodus_core.testing.scripted_sandbox import RUNNING, exited

from tests.unit.api.rest import Rest

T = TypeVar("T")


class Wires:
    """Nobody hears what is said over a connection."""

    def post(self, connection: str, text: str) -> bool:
        return True


def behaves(kind: str, request: dict[str, Any]) -> dict[str, Any]:
    return RUNNING if kind == "terminal" else exited("out\n")


def answers(kind: str, request: dict[str, Any]) -> dict[str, Any]:
    return {"state": "exited", "status": 200, "headers": [], "size": 1, "content": "eA=="}


class Visitors:
    """The sandbox of a run that waits, and people who work in it through processes that may die."""

    def __init__(self, crash: CrashOnce) -> None:
        self.rest = Rest(plays([says("one")]), behaves)
        self.rest.agent()
        self.rest.run("kept", keepAlive=True)
        self.world = world = self.rest.world
        world.settle()
        world.sandboxes.answers = answers
        self.name = self.rest.get("agentruns/kept").json["status"]["sandbox"]["name"]
        self.place = Place("acme", "web", "test", Grant(("*",), ("*",)), digest(self.rest.key))
        journal = Journal(self.rest.store, world.ids, crash)
        shelf, asking = (
            Shelf(journal, world.payloads, world.clock),
            Asking(journal, world.sandboxes, world.clock),
        )
        door = Door(Access(journal.writer), world.clock, Limits(Rates(journal.writer), world.clock))
        self.commands = SandboxCommands(shelf, world.kicks, asking)
        self.terminals = SandboxTerminals(shelf, self.commands, "wss://link.test/v1")
        self.previews = SandboxPreviews(
            shelf, door, MachinesSeen(shelf), asking, world.transfers, world.ids, "https://api.test"
        )
        self.relay = Relay(journal, Wires(), world.clock)
        self.tickets: list[str] = []
        self.crashes = 0

    def insist(self, step: Callable[[], T]) -> T:
        """A client without an answer asks again."""
        try:
            return step()
        except Crash:
            self.crashes += 1
            return step()

    def work(self) -> None:
        command = read_command({"command": "date", "requestKey": "k"})
        self.insist(lambda: self.commands.run(self.place, self.name, command))
        opens = read_terminal({"requestKey": "t"})
        shown = self.insist(lambda: self.terminals.open(self.place, self.name, opens))[0]
        self.world.sandboxes.turn()
        connection = self.insist(lambda: self.connect(shown["metadata"]["name"]))
        assert self.rest.world.outside.connection(connection) is not None
        self.insist(lambda: self.relay.left(connection))
        assert self.rest.world.outside.connection(connection) is None
        made = self.insist(lambda: self.previews.make(self.place, self.name, read_preview({"port": 8000})))
        token = urlsplit(made["url"]).path.split("/")[2]
        visit = Visit("GET", "/", {}, b"")
        assert self.insist(lambda: self.previews.visit(token, visit)).body == b"x"

    def connect(self, terminal: str) -> str:
        """Somebody asks for a ticket, and comes with it."""
        shown = self.terminals.attach(self.place, self.name, terminal)
        ticket = parse_qs(urlsplit(shown["status"]["connect"]["url"]).query)["ticket"][0]
        self.tickets.append(ticket)
        connection = f"connection-{len(self.tickets)}"
        self.relay.admit(ticket, connection)
        return connection


@functools.cache
def passings() -> list[tuple[str, int]]:
    crash = CrashOnce()
    Visitors(crash).work()
    return crash.passings(without="take-uses")


def test_the_story_passes_every_commit_of_people_in_sandboxes() -> None:
    assert {point.partition(".")[0] for point, _ in passings()} >= {
        *("place-beside", "issue-ticket", "admit-watcher", "leave-wire"),
        *("issue-preview", "place-ask", "take-answer"),
    }


@pytest.mark.req("NOD-443", "NOD-444", "NOD-445", "NOD-417")
def test_a_crash_at_any_point_changes_nothing() -> None:
    for point, passing in passings():
        visitors = Visitors(CrashOnce(point, passing))
        visitors.work()
        assert visitors.crashes == 1, point
        effects = [command[:2] for _, command in visitors.world.sandboxes.effects]
        assert sorted(effects) == ["t-", "u-"], point
        for ticket in visitors.tickets:  # used up, or lost with the answer that would have used it
            if visitors.world.outside.ticket(digest(ticket)) is None:
                with pytest.raises(Refusal):
                    visitors.relay.admit(ticket, "thief")
        # What nobody knows of any more goes by its time, and nothing else stays.
        for key, row in visitors.rest.store.rows().items():
            kept_for_good = key.pk.partition("#")[0] not in ("ask", "ticket", "wire", "view")
            assert kept_for_good or row["ttl"] > 0, point
