"""Many runs and sandboxes under few accounts, with everything that may happen to their workers, on real commits.

One step is one thing that one worker does. A worker may be late: it acts on a run as it saw it some steps ago, and
must be refused then. A worker may die: whatever it had begun stays as the journal has it, and another goes on.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from random import Random

from nodus_core.billing.slices import lacking, slice_for
from nodus_core.journal.accounts import limiting
from nodus_core.journal.codec import from_row
from nodus_core.journal.fence import Fence
from nodus_core.journal.journal import Journal
from nodus_core.journal.keys import account_key, run_key
from nodus_core.journal.store import Absent, Equals, Key, Put, Row, both
from nodus_core.journal.writer import stored
from nodus_core.kernel.errors import ConditionFailed
from nodus_core.kernel.money import ZERO, Account
from nodus_core.kernel.objects import Hold, Run
from nodus_core.kernel.progress import begin, fits, settle
from nodus_core.kernel.states import Guarantee, RunState, TaskKind, TaskState
from nodus_core.kernel.tasks import Task
from nodus_core.testing.clock import CountingIds
from nodus_core.testing.memory_store import MemoryStore

from tests.property.rooms import Rooms

NOW = datetime(2030, 1, 1, tzinfo=UTC)
MOST_CALLS = 64
CENT = Decimal("0.01")


class Rows(MemoryStore):
    """Gives its rows out without copying them, for speed: nobody here changes what was read."""

    def get(self, keys: Sequence[Key]) -> list[Row | None]:
        return [self._rows.get(key) for key in keys]

    def rows(self) -> dict[Key, Row]:
        return self._rows


@dataclass
class Line:
    """A run as its worker sees it, what it saw before, and its calls that are under way."""

    run: Run
    cap: Decimal
    seen: list[Run] = field(default_factory=list[Run])
    open: dict[str, Task] = field(default_factory=dict[str, Task])
    made: int = 0


class Purses:
    """One trial. `dice` decides everything."""

    def __init__(self, dice: Random) -> None:
        self.dice = dice
        self.store = Rows()
        self.journal = Journal(self.store, CountingIds())
        self.names = [f"account-{number}" for number in range(dice.randint(1, 3))]
        for name in self.names:
            limit = dice.randint(1, 300) * CENT
            account = Account(name, "Budget", "acme", name, limit, available=limit, project="web")
            self.journal.writer.commit("open", Put(stored(account_key(name), account), when=Absent()))
        self.lines = [self._line(number) for number in range(dice.randint(1, 4))]
        self.rooms = Rooms(self.journal, dice, self.names)
        self.refused = 0

    def _line(self, number: int) -> Line:
        cap = self.dice.randint(1, 200) * CENT
        run = Run(f"run{number}", f"conv{number}", 1, RunState.RUNNING, {"main": Hold(1, "w")}, cap, NOW)
        self.journal.writer.commit("open", Put(stored(run_key(run.uid), run), when=Absent()))
        return Line(run, cap)

    # --- one step ---

    def step(self) -> None:
        line = self.dice.choice(self.lines)
        act = self.dice.choice(
            [
                self._call,
                self._call,
                self._settle,
                self._settle,
                self._rest,
                self._late,
                self._raise,
                self._room,
            ]
        )
        act(line)
        self.check()

    def _call(self, line: Line) -> None:
        """As many of up to 64 parallel calls as the cap and the accounts cover (NODQ-75)."""
        bound = self.dice.randint(1, 20) * CENT / 2
        wanted = self.dice.randint(1, MOST_CALLS)
        self._secure(line, min(bound * wanted, line.run.available))
        if not fits(line.run, bound):
            self._secure(line, bound)
        count = 0
        while count < wanted and line.run.purse and fits(line.run, bound * (count + 1)):
            count += 1
        tasks = [self._task(line, bound) for _ in range(count)]
        if tasks:
            self._write(line, begin(line.run, tasks))
            line.open |= {task.key: task for task in tasks}

    def _secure(self, line: Line, reserve: Decimal) -> None:
        """What `conversations.funding` does, without a conversation around it."""
        run = line.run
        if reserve <= ZERO or reserve > run.available or (run.purse and reserve <= run.purse.left):
            return
        payers = [account for account in self.journal.accounts.accounts(self.names) if account]
        left = run.purse.left if run.purse else ZERO
        short = reserve - left
        if lacking(payers, short) is not None:
            return
        amount = slice_for(short, reserve, run.available - reserve, payers)
        self._moved(line, self.journal.accounts.fund(_fence(run), run, payers, amount))

    def _settle(self, line: Line) -> None:
        """Some calls end: for less than their reserve, for all of it, for nothing, or for nobody knows what."""
        done = [task for task in line.open.values() if self.dice.random() < 0.6]
        ended = [
            replace(
                task,
                state=self.dice.choice([TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED]),
                cost=self.dice.choice([None, ZERO, task.reserved, (task.reserved or ZERO) / 4]),
                finished_at=NOW,
            )
            for task in done
        ]
        if ended:
            self._write(line, settle(line.run, ended))
            for task in ended:
                del line.open[task.key]

    def _rest(self, line: Line) -> None:
        if line.run.purse is not None:
            payers = [account for account in self.journal.accounts.accounts(self.names) if account]
            self._moved(line, self.journal.accounts.give_back(_fence(line.run), line.run, payers, NOW))

    def _late(self, line: Line) -> None:
        """A worker that has slept since an earlier commit wakes up, and does not notice; it is refused."""
        if not line.seen:
            return
        old, accounts = self.dice.choice(line.seen), self.journal.accounts
        payers = [account for account in accounts.accounts(self.names) if account]
        names = tuple(account.id for account in payers)
        try:
            if old.purse is None or old.purse.payers == names:
                accounts.fund(_fence(old), old, payers, CENT)
            accounts.give_back(_fence(old), old, payers, NOW)
        except ConditionFailed:
            self.refused += 1
        else:
            raise AssertionError("a worker that woke too late has moved money")

    def _raise(self, _: Line) -> None:
        """Somebody raises a limit."""
        name = self.dice.choice(self.names)
        account = self.journal.accounts.account(name)
        assert account is not None
        more = limiting(account, account.limit + self.dice.randint(0, 20) * CENT, NOW)
        self.journal.writer.commit("limit", more)

    def _room(self, _: Line) -> None:
        """Something happens to a sandbox."""
        self.refused += self.rooms.step()

    # --- what must hold ---

    def check(self) -> None:
        """At no instant is booked plus reserved above any limit (FLD-11)."""
        rows = self.store.rows()
        runs = [from_row(Run, row) for key, row in rows.items() if key.pk.startswith("run#")]
        for line, run in zip(self.lines, runs, strict=True):
            reserved = sum((task.reserved or ZERO for task in line.open.values()), ZERO)
            assert run.available >= 0
            assert run.available + run.spent + reserved == line.cap
            assert run.purse is None or run.purse.reserved == reserved
            assert run.purse is None or min(run.purse.left, run.purse.due, run.purse.held) >= 0
        for name in self.names:
            account = from_row(Account, rows[account_key(name)])
            assert account.available >= 0 or self.rooms.overdrawn
            assert account.available + account.held + account.spent == account.limit
            held, compute = self.rooms.totals(name)
            assert account.held == sum((run.purse.held for run in runs if run.purse), held)
            assert account.compute == compute
            booked = sum((run.spent - (run.purse.due if run.purse else ZERO) for run in runs), ZERO)
            assert account.models == booked

    def end(self) -> None:
        """Every call ends, every run rests: nothing is reserved or held any more."""
        for line in self.lines:
            ended = [replace(task, state=TaskState.CANCELED, finished_at=NOW) for task in line.open.values()]
            self._write(line, settle(line.run, ended))
            line.open.clear()
            self._rest(line)
        self.rooms.end()
        self.check()
        for account in self.journal.accounts.accounts(self.names):
            assert account is not None
            assert account.held == 0
            assert account.models == sum((line.run.spent for line in self.lines), ZERO)

    # --- commits ---

    def _write(self, line: Line, after: Run) -> None:
        """The run's head as a step of its journal writes it."""
        after = replace(after, version=line.run.version + 1)
        when = both(_fence(line.run).on_run, Equals("version", line.run.version))
        self.journal.writer.commit("record", Put(stored(run_key(after.uid), after), when=when))
        self._moved(line, after)

    def _moved(self, line: Line, after: Run) -> None:
        line.seen = [*line.seen[-3:], line.run]
        # The worker dies now and then; the next one has only what the journal says.
        line.run = after if self.dice.random() < 0.8 else self.journal.run(after.uid) or after

    def _task(self, line: Line, reserve: Decimal) -> Task:
        line.made += 1
        return Task(
            line.run.uid,
            f"call{line.made}",
            TaskKind.MODEL,
            TaskState.RUNNING,
            Guarantee.AT_LEAST_ONCE,
            1,
            NOW,
            reserved=reserve,
        )


def _fence(run: Run) -> Fence:
    return Fence(run.conversation, run.lines["main"].generation, run.lines["main"].claimant)
