"""Commits on machines that are started before anybody needs them (decision 32).

place ──► note-warm-task, warm-up (either first) ──► bind ──► (a sandbox's own commits)
                      └──► drop-warm
"""

from datetime import datetime, timedelta

from nodus_core.journal.keys import bound_key, sandbox_key, warm_key
from nodus_core.journal.store import Absent, Delete, Either, Equals, Present, Put, Update, both
from nodus_core.journal.writer import Writer, stored
from nodus_core.kernel.states import SandboxState
from nodus_core.kernel.warm import BoundMachine, WarmMachine

KEPT = timedelta(days=9)
"""How long it is known whose a machine became: longer than any daemon lives."""


class Warm:
    """Each commit raises `ConditionFailed`."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def place(self, machine: WarmMachine) -> None:
        """The machine's row exists before its task is asked for (FLD-10). Condition: there is none."""
        self._writer.commit("place-warm", Put(stored(warm_key(machine.id), machine), when=Absent()))

    def note_task(self, machine: str, task: str) -> None:
        """Keeps the provider's id of the task. Condition: the machine is nobody's, no other task is kept."""
        self._writer.commit(
            "note-warm-task",
            Update(
                warm_key(machine),
                when=both(Present(), Either((Absent("task"), Equals("task", task)))),
                assign={"task": task},
            ),
        )

    def come_up(self, machine: str, code_hash: str, token_hash: str, enrol_hash: str) -> None:
        """Its daemon asks whose it is. Condition: the code is right, the machine is nobody's, no other token is bound."""
        self._writer.commit(
            "warm-up",
            Update(
                warm_key(machine),
                when=both(
                    Equals("code_hash", code_hash),
                    Either((Absent("token_hash"), Equals("token_hash", token_hash))),
                ),
                assign={"token_hash": token_hash, "enrol_hash": enrol_hash},
            ),
        )

    def bind(self, machine: WarmMachine, sandbox: str, issued_hash: str, now: datetime) -> None:
        """The machine becomes a sandbox's, once and for all: its task is noted, and its daemon's code is the one that
        enrols.

        Condition: the machine is nobody's and up, as it was seen; the sandbox is asked for, has no task and no daemon,
        and the code issued last is that of `issued_hash`: no later worker has taken the line over.
        """
        if machine.task is None or machine.token_hash is None or machine.enrol_hash is None:
            raise ValueError(f"machine {machine.id} is not up")
        bound = BoundMachine(machine.id, sandbox, machine.token_hash, now)
        self._writer.commit(
            "bind-warm",
            Delete(
                warm_key(machine.id),
                when=both(Equals("task", machine.task), Equals("enrol_hash", machine.enrol_hash)),
            ),
            Put(
                stored(bound_key(machine.id), bound, ttl=int((now + KEPT).timestamp())),
                when=Absent(),
            ),
            Update(
                sandbox_key(sandbox),
                when=both(
                    Equals("state", SandboxState.REQUESTED.value),
                    Equals("enrol_hash", issued_hash),
                    Absent("task"),
                    Absent("token_hash"),
                ),
                assign={"task": machine.task, "enrol_hash": machine.enrol_hash},
                remove=("outbox",),
            ),
        )

    def drop(self, machine: str) -> None:
        """Nobody gets it any more; its task is to be stopped. Condition: it is nobody's."""
        self._writer.commit("drop-warm", Delete(warm_key(machine), when=Present()))
