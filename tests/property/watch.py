"""What must hold at every single commit: a store that looks at each one and objects."""

import re
from typing import Any

from nodus_core.journal.codec import from_row
from nodus_core.journal.store import Key, Row, Transaction
from nodus_core.kernel.money import ZERO, Account
from nodus_core.kernel.objects import Conversation, Run
from nodus_core.kernel.progress import booked
from nodus_core.kernel.sandboxes import Sandbox
from nodus_core.kernel.states import FINAL_TASKS, InputState, RunState, TaskState, TurnState, may_move
from nodus_core.kernel.tasks import Task
from nodus_core.testing.memory_store import MemoryStore

INVARIANTS = (
    *("INV-08", "INV-10", "INV-12", "INV-16", "INV-42", "INV-43", "INV-44", "INV-46", "INV-49", "INV-50"),
    "INV-52",
)
"""Rows of the orchestration catalogue that hold at every commit and in the end, whatever was played."""

BATCH = 30
"""Calls of one message that one commit begins (`conversations.calls`)."""

_CALL = re.compile(r"^r(\d+)t(\d+)$")


class WatchedStore(MemoryStore):
    """A `MemoryStore` whose every commit is checked against the invariants of docs/invariants.md."""

    def commit(self, transaction: Transaction, token: str) -> None:
        with self._lock:
            applied = len(self.commits)
            before = {operation.key: self._rows.get(operation.key) for operation in transaction.operations}
            super().commit(transaction, token)
            if len(self.commits) == applied:
                return  # the same transaction again
            for key, old in before.items():
                self._check(transaction.name, key, old, self._rows.get(key))
            for run in {key.pk for key in before if key.pk.startswith("run#")}:
                self._check_run(run)

    def take_over(self, other: "WatchedStore") -> None:
        """Holds what the other one holds."""
        with self._lock:
            for key in list(self._rows):
                self._keep(key, None)
            for key, row in other.rows().items():
                self._keep(key, row)

    def _check(self, name: str, key: Key, old: Row | None, new: Row | None) -> None:
        if key.sk.startswith("t#"):
            self._check_task(name, key, old, new)
        elif key.sk.startswith("obs#"):
            assert old is None, f"{name}: an observation is written twice"
        elif key.sk.startswith("turn#"):
            assert old is None or old["state"] == TurnState.OPEN, f"{name}: a final turn changed"
        elif key.pk.startswith("sb#") and key.sk.startswith("cmd#"):
            self._check_command(name, old, new)
        elif key.pk.startswith("run#") and key.sk == "head":
            assert new is not None
            assert (old or {}).get("stop") in (None, new.get("stop")), f"{name}: the run's stop marker moved"
            assert new["version"] >= (old or new)["version"]
        elif key.sk.startswith("in#"):
            assert new is not None
            assert old is None or old["state"] == InputState.QUEUED, f"{name}: {key.sk} was read and changed"
        elif key.pk.startswith("conv#") and key.sk == "head":
            self._check_conversation(name, old, new)
        elif key.pk.startswith("acct#") and key.sk == "head":
            assert new is not None
            self._check_account(name, None if old is None else from_row(Account, old), from_row(Account, new))

    def _check_account(self, name: str, before: Account | None, account: Account) -> None:
        """Nothing is handed out above the limit, and what is held is in a purse or a meter (FLD-11).

        Only the time of a sandbox that nobody could stop is booked beyond it.
        """
        floor = min(before.available, ZERO) if before else ZERO
        late = name in ("extend-sandbox", "book-sandbox")
        assert late or account.available >= floor, f"{name}: {account.id} has given more than it had"
        assert account.available + account.held + account.spent == account.limit
        runs = [
            from_row(Run, row)
            for key, row in self._rows.items()
            if key.pk.startswith("run#") and key.sk == "head"
        ]
        purses = [run.purse for run in runs if run.purse and account.id in run.purse.payers]
        meters = [
            sandbox.meter
            for key, row in self._rows.items()
            if key.pk.startswith("sb#") and key.sk == "head" and (sandbox := from_row(Sandbox, row)).meter
        ]
        metered = [meter.held for meter in meters if meter and account.id in meter.payers]
        held = sum((*(purse.held for purse in purses), *metered), ZERO)
        assert account.held == held, f"{name}: money leaks"

    def _check_task(self, name: str, key: Key, old: Row | None, new: Row | None) -> None:
        assert new is not None, f"{name}: a task is gone"
        if old is None:
            run = from_row(Run, self._rows[Key(key.pk, "head")])
            assert "stop" not in self._rows[Key(f"conv#{run.conversation}", "head")], (
                f"{name}: {key.sk} was placed"
            )
            return
        was, became = from_row(Task, old), from_row(Task, new)
        assert not _is_final(was), f"{name}: {key.sk} was final and changed (INV-42)"
        assert was.state is became.state or may_move(was.state, became.state), (name, was.state, became.state)
        assert became.attempt >= was.attempt, f"{name}: {key.sk} got an attempt back (INV-46)"
        kept = became.resolutions[: len(was.resolutions)] == was.resolutions
        assert kept, f"{name}: what a person said of {key.sk} is gone"
        if was.state is TaskState.UNCERTAIN and became.state in (TaskState.COMPLETED, TaskState.RUNNING):
            assert was.resolution is not None, f"{name}: {key.sk} was resolved by nobody (NOD-092)"
        assert became.reserved == was.reserved, f"{name}: the reserve of {key.sk} moved"
        assert became.started_at == was.started_at

    def _check_command(self, name: str, old: Row | None, new: Row | None) -> None:
        assert new is not None
        if old is not None and old["state"] in ("done", "lost", "withdrawn"):
            kept = ("state", "result", "finished_at", "boot", "request", "digest")
            assert [old.get(field) for field in kept] == [new.get(field) for field in kept], name

    def _check_conversation(self, name: str, old: Row | None, new: Row | None) -> None:
        if old is None or new is None:
            return
        assert new["cap"] == old["cap"], f"{name}: the cap moved (NOD-131)"
        assert new["line"]["generation"] >= old["line"]["generation"]
        assert new["opened"] >= old["opened"]
        assert new["accepted"] - old["accepted"] in (0, 1)
        assert new["accepted"] == old["accepted"] or not (new["ended"] or "stop" in new), f"{name}: too late"
        assert new["opened"] + new["returned"] <= new["accepted"]
        assert old.get("stop") in (None, new.get("stop")), f"{name}: the stop marker moved"
        assert new["ended"] or not old["ended"], f"{name}: an ended conversation takes input again"
        if "run" not in new and new["spent"] > old["spent"]:
            assert new["opened"] == old["opened"]

    # --- a run as a whole, after each commit on it ---

    def _check_run(self, pk: str) -> None:
        run = from_row(Run, self._rows[Key(pk, "head")])
        tasks = self._tasks(pk)
        head = from_row(Conversation, self._rows[Key(f"conv#{run.conversation}", "head")])
        reserved = sum((tasks[key].reserved or ZERO for key in run.open), ZERO)
        left = run.available + run.spent + reserved
        before = head.spent - (run.spent if head.run != run.uid else ZERO)
        if head.opened == run.turn:
            assert left == head.cap - before, f"{pk}: {left} USD of {head.cap - before} are accounted for"
        assert run.available >= 0
        assert run.open == {key for key, task in tasks.items() if not _is_final(task)}
        if head.run == run.uid:
            assert run.stop == head.stop, f"{pk}: stopped in one head and not in the other"
        asked = {item.task for item in run.attention}
        if run.stop is None:
            assert asked == {key for key in run.open if _is_held(tasks[key]) and not tasks[key].resolution}
            assert (run.state is RunState.NEEDS_ATTENTION) is bool(asked)
        if run.purse is not None and run.purse.payers:
            assert run.purse.reserved == reserved, f"{pk}: the purse has another reserve than the calls"
            assert min(run.purse.left, run.purse.due) >= 0
        self._check_log(pk, run, tasks)
        _check_batches(tasks)

    def _check_log(self, pk: str, run: Run, tasks: dict[str, Task]) -> None:
        """Gap-free, one entry for each final task, and every reader sees a prefix (INV-08, INV-44)."""
        log = sorted(
            (key.sk, row) for key, row in self._rows.items() if key.pk == pk and key.sk.startswith("obs#")
        )
        assert [row["seq"] for _, row in log] == list(range(1, run.seq + 1))
        final = {key: task.state for key, task in tasks.items() if _is_final(task)}
        assert {row["task"]: TaskState(row["state"]) for _, row in log} == final
        assert len(log) == len(final)
        spent = sum((booked(task) for task in tasks.values() if _is_final(task)), ZERO)
        assert run.spent == spent, f"{pk}: booked {run.spent}, the tasks say {spent}"

    def _tasks(self, pk: str) -> dict[str, Task]:
        found: dict[str, Task] = {}
        for key, row in self._rows.items():
            if key.pk == pk and key.sk.startswith("t#"):
                task = from_row(Task, row)
                found[task.key] = task
        return found


def _is_held(task: Task) -> bool:
    """Whether a person is asked, or was asked, what became of it, and nothing has followed yet."""
    return task.state is TaskState.UNCERTAIN and task.finished_at is None


def _is_final(task: Task) -> bool:
    return task.state in FINAL_TASKS and not _is_held(task)


def _check_batches(tasks: dict[str, Task]) -> None:
    """Calls of a message are there in whole batches (INV-43)."""
    present: dict[int, list[int]] = {}
    for key in tasks:
        match = _CALL.match(key)
        if match:
            present.setdefault(int(match[1]), []).append(int(match[2]))
    for number, indexes in present.items():
        parent = tasks[f"r{number}"]
        assert sorted(indexes) == list(range(len(indexes)))
        assert len(indexes) % BATCH == 0 or len(indexes) == len(parent.calls), (number, len(indexes))


def rows_of(store: MemoryStore) -> dict[Key, dict[str, Any]]:
    """What is stored, for comparing it later."""
    return store.rows()
