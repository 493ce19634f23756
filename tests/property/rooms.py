"""Sandboxes under the accounts of a trial: asked for, paid ahead, paid late, gone, booked, on real commits."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random

from nodus_core.billing import compute
from nodus_core.billing.compute import Lacking
from nodus_core.journal.fence import Fence
from nodus_core.journal.journal import Journal
from nodus_core.journal.keys import conversation_key, sandbox_key
from nodus_core.journal.meters import moves
from nodus_core.journal.store import Absent, Put
from nodus_core.journal.writer import stored
from nodus_core.kernel import metering
from nodus_core.kernel.errors import ConditionFailed
from nodus_core.kernel.money import ZERO, Account, Meter
from nodus_core.kernel.objects import Conversation, Line, ObjectKey
from nodus_core.kernel.sandboxes import Sandbox
from nodus_core.kernel.states import SandboxState
from nodus_core.kernel.text import Inline

BEGIN = datetime(2030, 1, 1, tzinfo=UTC)
NAMES = ObjectKey("acme", "web", "AgentRun", "run")
RATE = Decimal("0.30")


class Rooms:
    """Each sandbox is a conversation's only one. `overdrawn`: one has lived longer than it was paid for."""

    def __init__(self, journal: Journal, dice: Random, accounts: list[str]) -> None:
        self.journal, self.dice, self.accounts = journal, dice, accounts
        self.now = BEGIN
        self.rooms: list[Sandbox] = []
        self.seen: list[Sandbox] = []
        self.overdrawn = False
        self.cost = dict.fromkeys(accounts, ZERO)

    def step(self) -> int:
        """One thing that happens. Returns how many late workers were refused."""
        self.now += timedelta(seconds=self.dice.randint(1, 1200))
        act = self.dice.choice([self._open, self._pay, self._pay, self._gone, self._book, self._late])
        return act()

    def _payers(self) -> tuple[Account, ...]:
        """Those who pay now: Budgets come and go."""
        found = [account for account in self.journal.accounts.accounts(self.accounts) if account]
        return tuple(account for account in found if self.dice.random() < 0.9)

    def _open(self) -> int:
        name, payers = f"room{len(self.rooms)}", self._payers()
        started = Sandbox(
            name, name, SandboxState.RUNNING, "", self.now, "image", task=name, started_at=self.now
        )
        made = compute.opened(started, RATE, ZERO, payers)
        if isinstance(made, Lacking):
            return 0
        sandbox = replace(started, meter=made)
        head = Conversation(
            name, NAMES, Inline("{}"), Line(1, "w"), self.now, Decimal(1), sandbox=name, sandboxes=1
        )
        self.journal.writer.commit(
            "ask",
            Put(stored(sandbox_key(name), sandbox), when=Absent()),
            Put(stored(conversation_key(name), head), when=Absent()),
            *moves(replace(made, payers=(), held=ZERO), made, payers, self.now),
        )
        self.rooms.append(sandbox)
        return 0

    def _pay(self) -> int:
        running = [room for room in self.rooms if room.state is SandboxState.RUNNING]
        if running:
            room = self.dice.choice(running)
            self._changed(self._extended(room, self._payers()))
        return 0

    def _extended(self, room: Sandbox, payers: tuple[Account, ...]) -> Sandbox:
        meter = _meter(room)
        after = compute.extended(room, meter, payers, self.now)
        if isinstance(after, Lacking):
            return room
        self._overdraw(room, metering.spent(room, self.now))
        others = [name for name in meter.payers if name not in {payer.id for payer in payers}]
        former = [account for account in self.journal.accounts.accounts(others) if account]
        paid = self.journal.meters.extend(_fence(room), room, after, (*payers, *former), self.now)
        self._count(meter, after)
        return paid

    def _gone(self) -> int:
        running = [room for room in self.rooms if room.state is SandboxState.RUNNING]
        if running:
            room = self.dice.choice(running)
            self.journal.sandboxes.gone(room.id, "gone", self.now)
            self._changed(self._read(room))
        return 0

    def _book(self) -> int:
        waiting = [room for room in self.rooms if metering.is_unbooked(room)]
        if waiting:
            self._changed(self._booked(self.dice.choice(waiting)))
        return 0

    def _booked(self, room: Sandbox) -> Sandbox:
        head = self.journal.conversation(room.conversation)
        assert head is not None
        meter = _meter(room)
        self._overdraw(room, metering.spent(room, self.now))
        payers = [account for account in self.journal.accounts.accounts(list(meter.payers)) if account]
        after = compute.closed(room, meter, self.now)
        _, booked = self.journal.meters.book(_fence(room), head, room, after, accounts=payers, now=self.now)
        self._count(meter, after)
        return booked

    def _count(self, before: Meter, after: Meter) -> None:
        for name in before.payers:
            self.cost[name] += after.booked - before.booked

    def _late(self) -> int:
        """A worker that has slept acts on a sandbox as it saw it; it is refused."""
        if not self.seen:
            return 0
        old = self.dice.choice(self.seen)
        payers = [account for account in self.journal.accounts.accounts(self.accounts) if account]
        after = replace(
            _meter(old), payers=tuple(payer.id for payer in payers), periods=_meter(old).periods + 1
        )
        head = self.journal.conversation(old.conversation)
        assert head is not None
        refused = 0
        for act in (
            lambda: self.journal.meters.extend(_fence(old), old, after, payers, self.now),
            lambda: self.journal.meters.book(_fence(old), head, old, after, accounts=payers, now=self.now),
        ):
            try:
                act()
            except ConditionFailed:
                refused += 1
        assert refused == 2, "a worker that woke too late has moved a sandbox's money"
        return refused

    def _overdraw(self, room: Sandbox, cost: Decimal) -> None:
        meter = _meter(room)
        self.overdrawn |= bool(meter.payers) and cost - meter.booked > meter.held

    def _changed(self, room: Sandbox) -> None:
        """The worker dies now and then; the next one has only what the journal says."""
        index = next(at for at, one in enumerate(self.rooms) if one.id == room.id)
        before = self.rooms[index]
        if _meter(before).periods < _meter(room).periods:
            self.seen = [*self.seen[-3:], before]
        self.rooms[index] = room if self.dice.random() < 0.8 else self._read(room)

    def _read(self, room: Sandbox) -> Sandbox:
        return self.journal.sandbox(room.id) or room

    # --- what must hold ---

    def totals(self, account: str) -> tuple[Decimal, Decimal]:
        """What sandboxes hold of an account, and what they have cost it."""
        held = sum((_meter(room).held for room in self.rooms if account in _meter(room).payers), ZERO)
        return held, self.cost[account]

    def check(self) -> None:
        """Every second of a sandbox is booked once: at its end, what was booked is what its time has cost."""
        for room in self.rooms:
            meter = _meter(self._read(room))
            assert meter.closed
            assert meter.held == ZERO
            assert meter.booked == metering.spent(room, self.now)

    def end(self) -> None:
        """Every sandbox is gone and booked."""
        for room in list(self.rooms):
            if room.state is SandboxState.RUNNING:
                self.journal.sandboxes.gone(room.id, "gone", self.now)
                self._changed(self._read(room))
        for room in list(self.rooms):
            if metering.is_unbooked(room):
                self._changed(self._booked(room))
        self.check()


def _meter(room: Sandbox) -> Meter:
    assert room.meter is not None
    return room.meter


def _fence(room: Sandbox) -> Fence:
    return Fence(room.conversation, 1, "w")
