"""The journal: everything that can be read from it, and the commits by noun."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, TypeVar

from nodus_core.journal import keys
from nodus_core.journal.accounts import Accounts
from nodus_core.journal.asks import Asks
from nodus_core.journal.batches import Batches, visible
from nodus_core.journal.codec import from_row
from nodus_core.journal.coolings import Coolings
from nodus_core.journal.image_builds import ImageBuilds
from nodus_core.journal.inputs import Inputs
from nodus_core.journal.keeping import Keeping
from nodus_core.journal.ledger import Ledger
from nodus_core.journal.lines import Lines
from nodus_core.journal.loose_values import LooseValues
from nodus_core.journal.machines import Machines
from nodus_core.journal.meters import Meters
from nodus_core.journal.objects import Objects
from nodus_core.journal.ports import CrashPoints, Ids, NoCrash
from nodus_core.journal.previews import Previews
from nodus_core.journal.resolutions import Resolutions
from nodus_core.journal.sandboxes import Sandboxes
from nodus_core.journal.saves import Saves
from nodus_core.journal.steps import Steps
from nodus_core.journal.store import Key, Row, Store
from nodus_core.journal.terminals import Terminals
from nodus_core.journal.terms import CallPlace, Terms, keys_of, terms_of
from nodus_core.journal.turns import Turns
from nodus_core.journal.warm import Warm
from nodus_core.journal.writer import Writer
from nodus_core.kernel.connections import Connection, Ticket
from nodus_core.kernel.image_builds import ImageBuild, LeftImages
from nodus_core.kernel.objects import (
    Batch,
    Conversation,
    Cooling,
    Input,
    LooseValue,
    Object,
    ObjectKey,
    Receipt,
    Run,
    Turn,
)
from nodus_core.kernel.sandboxes import Ask, AskAnswer, Command, Sandbox
from nodus_core.kernel.tasks import Observation, Task
from nodus_core.kernel.times import stamp
from nodus_core.kernel.warm import BoundMachine, WarmMachine

T = TypeVar("T")

_EVER = "9999"
"""Behind every stamp of a time."""


@dataclass(frozen=True)
class Progress:
    """A run's head, a sandbox, commands of it in the order that was asked for, and the terms of a model call."""

    run: Run | None
    sandbox: Sandbox | None
    commands: list[Command | None]
    terms: Terms | None


class Firsts(NamedTuple):
    """The first objects of a kind, and whether there are more. `unseen`: some of a batch that is not decided lie before."""

    objects: list[Object]
    more: bool
    unseen: bool


class Journal:
    """Reads are strongly consistent. Commits stand under their noun: `journal.steps.record(…)`."""

    def __init__(self, store: Store, ids: Ids, crash: CrashPoints | None = None) -> None:
        writer = Writer(store, ids, crash or NoCrash())
        self.store = store
        self.writer = writer
        self.objects = Objects(writer)
        self.batches = Batches(writer)
        self.lines = Lines(writer)
        self.inputs = Inputs(writer)
        self.turns = Turns(writer)
        self.keeping = Keeping(writer)
        self.steps = Steps(writer)
        self.resolutions = Resolutions(writer)
        self.sandboxes = Sandboxes(writer)
        self.asks = Asks(writer)
        self.coolings = Coolings(writer)
        self.loose_values = LooseValues(writer)
        self.accounts = Accounts(writer)
        self.ledger = Ledger(writer)
        self.meters = Meters(writer)
        self.machines = Machines(writer)
        self.saves = Saves(writer)
        self.terminals = Terminals(writer)
        self.image_builds = ImageBuilds(writer)
        self.previews = Previews(writer)
        self.warm = Warm(writer)

    # --- resources ---

    def object(self, key: ObjectKey) -> Object | None:
        return self.objects_at([key])[0]

    def objects_at(self, wanted: Sequence[ObjectKey]) -> list[Object | None]:
        """Up to 100 objects, in the order of their keys."""
        rows = visible(self.store, self.store.get([keys.object_key(key) for key in wanted]))
        return [None if row is None else from_row(Object, row) for row in rows]

    def objects_of(
        self, org: str, project: str, kind: str, *, after: str | None = None, limit: int = 100
    ) -> tuple[list[Object], str | None]:
        """A page of at most 100 of a kind's objects in name order, and the name to go on behind."""
        page = self.store.query(keys.object_partition(org, project, kind), after=after, limit=limit)
        rows = visible(self.store, page.rows)
        return [from_row(Object, row) for row in rows if row is not None], page.after

    def first_of(self, org: str, project: str, kind: str, limit: int) -> Firsts:
        """The first of a kind's objects, whatever lies before them that nobody sees."""
        after: str | None = None
        unseen = False
        while True:
            page = self.store.query(keys.object_partition(org, project, kind), after=after, limit=limit)
            rows = visible(self.store, page.rows)
            found = [from_row(Object, row) for row in rows if row is not None]
            unseen = unseen or len(found) < len(rows)
            after = page.after
            if found or after is None:
                return Firsts(found, after is not None, unseen)

    def batch(self, batch: str) -> Batch | None:
        return self._one(Batch, keys.batch_key(batch))

    def receipt(self, key: str) -> Receipt | None:
        return self._one(Receipt, keys.receipt_key(key))

    def loose_value(self, uid: str) -> LooseValue | None:
        return self._one(LooseValue, keys.loose_value_key(uid))

    def image_build(self, build: str) -> ImageBuild | None:
        return self._one(ImageBuild, keys.image_build_key(build))

    def left_images(self, uid: str) -> LeftImages | None:
        return self._one(LeftImages, keys.left_images_key(uid))

    # --- conversations ---

    def conversation(self, conversation: str) -> Conversation | None:
        return self._one(Conversation, keys.conversation_key(conversation))

    def input(self, conversation: str, seq: int) -> Input | None:
        return self._one(Input, keys.input_key(conversation, seq))

    def inputs_of(self, conversation: str, *, after: int, limit: int) -> list[Input]:
        """Inputs behind number `after`, in the order of their acceptance."""
        start = keys.input_key(conversation, after).sk
        page = self.store.query(keys.conversation_partition(conversation), "in#", after=start, limit=limit)
        return [from_row(Input, row) for row in page.rows]

    def message(self, conversation: str, key: str) -> Receipt | None:
        """The receipt of an accepted message, by its message key."""
        return self._one(Receipt, keys.message_key(conversation, key))

    def turn(self, conversation: str, number: int) -> Turn | None:
        return self._one(Turn, keys.turn_key(conversation, number))

    # --- runs ---

    def run(self, run: str) -> Run | None:
        return self._one(Run, keys.run_key(run))

    def tasks(self, run: str, names: Sequence[str]) -> dict[str, Task]:
        """Those of the named tasks that exist."""
        found: dict[str, Task] = {}
        for start in range(0, len(names), 100):
            rows = self.store.get([keys.task_key(run, name) for name in names[start : start + 100]])
            for row in rows:
                if row is not None:
                    task = from_row(Task, row)
                    found[task.key] = task
        return found

    def all_tasks(self, run: str) -> Iterator[Task]:
        for row in self._rows(keys.run_partition(run), "t#"):
            yield from_row(Task, row)

    def observations(self, run: str, *, after: int = 0, limit: int = 1000) -> list[Observation]:
        """Entries of the run's log behind number `after`, in order."""
        start = keys.observation_key(run, after).sk if after else None
        page = self.store.query(keys.run_partition(run), "obs#", after=start, limit=limit)
        return [from_row(Observation, row) for row in page.rows]

    # --- sandboxes ---

    def sandbox(self, sandbox: str) -> Sandbox | None:
        return self._one(Sandbox, keys.sandbox_key(sandbox))

    def sandboxes_at(self, names: Sequence[str]) -> dict[str, Sandbox]:
        """Those of the sandboxes that have a row, by id."""
        found: dict[str, Sandbox] = {}
        for start in range(0, len(names), 100):
            rows = self.store.get([keys.sandbox_key(name) for name in names[start : start + 100]])
            heads = [from_row(Sandbox, row) for row in rows if row is not None]
            found |= {head.id: head for head in heads}
        return found

    def live_sandboxes(self, shard: str) -> Iterator[str]:
        """Ids of the sandboxes that are not gone, oldest first (as the index knows it: read each again).

        `shard` is one of `keys.LIVE_SHARDS`.
        """
        for key in self.store.due(shard, _EVER):
            yield key.pk.partition("#")[2]

    def command(self, sandbox: str, command: str) -> Command | None:
        return self._one(Command, keys.command_key(sandbox, command))

    def ticket(self, ticket_hash: str) -> Ticket | None:
        return self._one(Ticket, keys.ticket_key(ticket_hash))

    def connection(self, connection: str) -> Connection | None:
        """Whose a connection of the WebSocket API is."""
        return self._one(Connection, keys.wire_key(connection))

    def progress(
        self, run: str, sandbox: str, names: Sequence[str], call: CallPlace | None = None
    ) -> Progress:
        """What a worker that waits for commands looks at, in one read; with `call`, the terms of one there as well.

        Each row is as it is now, and may be newer than its neighbours.
        """
        beside = keys_of(call) if call else ()
        head, place, *rows = self.store.get(
            [
                keys.run_key(run),
                keys.sandbox_key(sandbox),
                *beside,
                *(keys.command_key(sandbox, name) for name in names),
            ]
        )
        return Progress(
            run=None if head is None else from_row(Run, head),
            sandbox=None if place is None else from_row(Sandbox, place),
            commands=[None if row is None else from_row(Command, row) for row in rows[len(beside) :]],
            terms=terms_of(rows[: len(beside)]) if beside else None,
        )

    def open_commands(self, sandbox: str) -> Iterator[Command]:
        """Commands of a sandbox that carry the mark of open ones: all that have not ended, and perhaps some that have."""
        return self.at_hand(sandbox)[0]

    def asks_of(self, sandbox: str) -> list[Ask]:
        """What stands in a sandbox's places for asks, answered or not, those whose time is over among them."""
        return self.at_hand(sandbox)[1]

    def at_hand(self, sandbox: str) -> tuple[Iterator[Command], list[Ask]]:
        """Both of them, whose marks and rows stand together: one read says that there is nothing to do."""
        rows = list(self._rows(keys.open_partition(sandbox)))
        names = [str(row["command"]) for row in rows if "command" in row]
        asks = [from_row(Ask, row) for row in rows if "command" not in row]
        return self._commands(sandbox, names), asks

    def _commands(self, sandbox: str, names: Sequence[str]) -> Iterator[Command]:
        for start in range(0, len(names), 100):
            wanted = [keys.command_key(sandbox, name) for name in names[start : start + 100]]
            yield from (from_row(Command, row) for row in self.store.get(wanted) if row is not None)

    def heard(self, sandbox: str, place: int) -> tuple[Sandbox | None, AskAnswer | None]:
        """A sandbox, and the answer in one of its places, in one read; each row is as it is now."""
        head, answer = self.store.get([keys.sandbox_key(sandbox), keys.ask_answer_key(sandbox, place)])
        return (
            None if head is None else from_row(Sandbox, head),
            None if answer is None else from_row(AskAnswer, answer),
        )

    def warm_machines(self) -> list[WarmMachine]:
        """All machines that belong to nobody yet, in no order that means anything."""
        return [from_row(WarmMachine, row) for row in self._rows(keys.WARM)]

    def warm_machine(self, machine: str) -> WarmMachine | None:
        """None: it was given to somebody (ask `bound_machine` next, in this order), or dropped, or never was."""
        return self._one(WarmMachine, keys.warm_key(machine))

    def bound_machine(self, machine: str) -> BoundMachine | None:
        """Whose a machine has become; None: nobody's."""
        return self._one(BoundMachine, keys.bound_key(machine))

    # --- models ---

    def cooling(self, gate: str) -> Cooling | None:
        return self._one(Cooling, keys.cooling_key(gate))

    # --- what is due ---

    def due(self, shard: str, now: datetime) -> Iterator[tuple[str, str]]:
        """What is due, oldest first (as the index knows it: read each again): noun and id.

        Lines and accounts, runs whose texts have been kept long enough, batches that are not over, keys that have
        expired long ago, builds of images, and images that deleted objects have left.
        """
        for key in self.store.due(shard, stamp(now)):
            noun, _, name = key.pk.partition("#")
            if noun in keys.DUE_NOUNS:
                yield noun, name

    def due_values(self, shard: str, now: datetime) -> Iterator[str]:
        """Uids of Secrets whose loose values are due, oldest first (read each again)."""
        for key in self.store.due(shard, stamp(now)):
            if key.pk.startswith(keys.LOOSE_VALUES):
                yield key.pk.removeprefix(keys.LOOSE_VALUES)

    def _one(self, cls: type[T], key: Key) -> T | None:
        row = self.store.get([key])[0]
        return None if row is None else from_row(cls, row)

    def _rows(self, pk: str, prefix: str = "") -> Iterator[Row]:
        after: str | None = None
        while True:
            page = self.store.query(pk, prefix, after=after)
            yield from page.rows
            if page.after is None:
                return
            after = page.after
