"""Commits on sandboxes and their command rows: the truth between a line and the daemon.

command:  pending ──claim(boot)──► claimed ──finish(boot)──► done
             │                        └── its boot or task is gone ──► lost   (never run again)
             └── withdraw ──► withdrawn                                       (certainly never ran)
"""

from dataclasses import dataclass
from datetime import datetime

from nodus_core.journal.codec import to_row, to_value
from nodus_core.journal.fence import Fence
from nodus_core.journal.keys import command_key, conversation_key, open_command_key, sandbox_key
from nodus_core.journal.lines import DUE
from nodus_core.journal.store import Absent, Both, Check, Delete, Either, Equals, OneOf, Row, Update, both
from nodus_core.journal.terminals import connected
from nodus_core.journal.writer import Writer
from nodus_core.kernel.connections import Connection
from nodus_core.kernel.sandboxes import Command, Used
from nodus_core.kernel.states import ALIVE_SANDBOXES, OPEN_COMMANDS, CommandState, SandboxState
from nodus_core.kernel.text import Text
from nodus_core.kernel.times import stamp

ALIVE = tuple(state.value for state in ALIVE_SANDBOXES)
BEFORE_GONE = (SandboxState.REQUESTED, SandboxState.RUNNING, SandboxState.RELEASING)
BOOKED = both(
    Equals("state", SandboxState.GONE.value), Either((Absent("meter"), Equals("meter.closed", True)))
)
"""Of a sandbox's row: it is gone, and all that its time has cost is booked."""
UNFINISHED = tuple(state.value for state in OPEN_COMMANDS)


@dataclass(frozen=True)
class Greeting:
    """What a daemon says of itself when it comes up.

    `isolated`: commands cannot reach the machine; `guard`: what enforces the egress policy (`network`, `seccomp`),
    None when nothing does; `opted_in`: the launcher says that a person wants commands to run without either;
    `about`: its version and limits, as JSON text.
    """

    boot: str
    token_hash: str
    isolated: bool = False
    guard: str | None = None
    opted_in: bool = False
    about: str = "{}"

    def to_fields(self) -> Row:
        """The attributes of the sandbox's row that a greeting sets."""
        guard = {"guard": self.guard} if self.guard else {}
        return {"boot": self.boot, "isolated": self.isolated, "about": self.about, **guard}


class Sandboxes:
    """Commits of the sandbox link and of the line's side of it. Each raises `ConditionFailed`."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def issue_code(self, fence: Fence, sandbox: str, enrol_hash: str, now: datetime) -> None:
        """Keeps the hash of the enrolment code that the next task gets; its time counts from now on.

        Condition: the fence holds (else a late worker could replace a code that was handed out since), no task
        is noted, no daemon has enrolled.
        """
        self._writer.commit(
            "issue-code",
            Update(
                sandbox_key(sandbox),
                when=both(
                    Equals("state", SandboxState.REQUESTED.value), Absent("task"), Absent("token_hash")
                ),
                assign={"enrol_hash": enrol_hash, "started_at": stamp(now)},
                remove=("outbox",),
            ),
            Check(conversation_key(fence.conversation), fence.on_conversation),
        )

    def note_task(self, sandbox: str, task: str) -> None:
        """Keeps the provider's id of the task. Condition: the sandbox is alive, no other task is kept."""
        self._writer.commit(
            "note-task",
            Update(
                sandbox_key(sandbox),
                when=both(OneOf("state", ALIVE), Either((Absent("task"), Equals("task", task)))),
                assign={"task": task},
            ),
        )

    def enrol(self, sandbox: str, enrol_hash: str, greeting: Greeting) -> None:
        """Binds the daemon's token to the sandbox and shows it running.

        Condition: the code is right, the sandbox is alive, no other token is bound.
        """
        self._writer.commit(
            "enrol",
            Update(
                sandbox_key(sandbox),
                when=both(
                    Equals("enrol_hash", enrol_hash),
                    OneOf("state", ALIVE),
                    Either((Absent("token_hash"), Equals("token_hash", greeting.token_hash))),
                ),
                assign={
                    "token_hash": greeting.token_hash,
                    **greeting.to_fields(),
                    "state": SandboxState.RUNNING.value,
                    "outbox": "sandbox",
                },
            ),
        )

    def reboot(self, sandbox: str, greeting: Greeting) -> None:
        """A daemon that came up again under its token. Condition: the token is bound, the sandbox alive.

        What the first greeting said of isolation and guard stays: commands may have run since.
        """
        self._writer.commit(
            "reboot",
            Update(
                sandbox_key(sandbox),
                when=both(Equals("token_hash", greeting.token_hash), OneOf("state", ALIVE)),
                assign={"boot": greeting.boot},
                remove=("outbox",),
            ),
        )

    def attach(self, sandbox: str, connection: str, now: datetime) -> None:
        """Keeps the bell's connection, and whose it is. Condition: the sandbox is alive."""
        self._writer.commit(
            "attach",
            Update(
                sandbox_key(sandbox),
                when=OneOf("state", ALIVE),
                assign={"connection": connection},
                remove=("outbox",),
            ),
            connected(Connection(connection, sandbox), now),
        )

    def note_use(self, sandbox: str, used: Used) -> None:
        """Keeps what it uses now. Condition: the sandbox is alive."""
        self._writer.commit(
            "note-use",
            Update(
                sandbox_key(sandbox),
                when=OneOf("state", ALIVE),
                assign={"used": to_row(used)},
                remove=("outbox",),
            ),
        )

    def want_sandbox(self, sandbox: str) -> None:
        """The line will rest and wants a kick when the sandbox is up or gone. Condition: still coming up."""
        self._writer.commit(
            "want-sandbox",
            Update(
                sandbox_key(sandbox),
                when=Equals("state", SandboxState.REQUESTED.value),
                assign={"wake": True, "outbox": "sandbox"},
            ),
        )

    def release(self, sandbox: str) -> None:
        """From now on the daemon is told to stop. Condition: the sandbox is alive."""
        self._writer.commit(
            "release-sandbox",
            Update(
                sandbox_key(sandbox),
                when=OneOf("state", ALIVE),
                assign={"state": SandboxState.RELEASING.value},
                remove=("outbox",),
            ),
        )

    def gone(
        self,
        sandbox: str,
        reason: str,
        at: datetime,
        *,
        began: datetime | None = None,
        only: tuple[SandboxState, ...] = BEFORE_GONE,
    ) -> None:
        """The task has ended; `began` is when its own time began, where the provider has said it (NOD-414).

        Condition: the sandbox is in one of the states `only`; the first word stays.
        """
        self._writer.commit(
            "sandbox-gone",
            Update(
                sandbox_key(sandbox),
                when=OneOf("state", tuple(state.value for state in only)),
                assign={
                    "state": SandboxState.GONE.value,
                    "reason": reason,
                    "gone_at": stamp(at),
                    **({} if began is None else {"started_at": stamp(began)}),
                    "outbox": "sandbox",
                },
                # No more among those that are not gone (`owning.live`).
                remove=("connection", *DUE),
            ),
        )

    def disown(self, fence: Fence, sandbox: str) -> None:
        """The conversation lets go of a sandbox that is gone.

        Condition: the fence holds, it is the owner, and the sandbox's time is booked.
        """
        self._writer.commit(
            "disown-sandbox",
            Update(
                conversation_key(fence.conversation),
                when=both(fence.on_conversation, Equals("sandbox", sandbox)),
                remove=("sandbox", "outbox"),
            ),
            Check(sandbox_key(sandbox), BOOKED),
        )

    def claim_command(self, command: Command, boot: str, now: datetime) -> None:
        """One boot of the daemon takes a command. Condition: pending, or claimed by this very boot."""
        mine = Both((Equals("state", CommandState.CLAIMED.value), Equals("boot", boot)))
        self._writer.commit(
            "claim-command",
            Update(
                command_key(command.sandbox, command.id),
                when=Either((Equals("state", CommandState.PENDING.value), mine)),
                assign={
                    "state": CommandState.CLAIMED.value,
                    "boot": boot,
                    "claimed_at": stamp(now),
                },
            ),
        )

    def finish_command(
        self, sandbox: str, command: str, boot: str, result: Text, now: datetime, *, told: Text | None = None
    ) -> None:
        """The daemon's result; `told` is the text of a long one, which `result` goes without.

        Condition: this boot has claimed it and not finished it: the first result stays.
        """
        self._writer.commit(
            "finish-command",
            Update(
                command_key(sandbox, command),
                when=both(Equals("boot", boot), Equals("state", CommandState.CLAIMED.value)),
                assign={
                    "state": CommandState.DONE.value,
                    "result": to_value(result),
                    "finished_at": stamp(now),
                    **({} if told is None else {"told": to_value(told)}),
                },
            ),
        )

    def lose_command(self, sandbox: str, command: str, now: datetime) -> None:
        """Nobody can tell what became of it. Condition: claimed and not finished."""
        self._writer.commit(
            "lose-command",
            Update(
                command_key(sandbox, command),
                when=Equals("state", CommandState.CLAIMED.value),
                assign={"state": CommandState.LOST.value, "finished_at": stamp(now)},
            ),
        )

    def close_command(self, sandbox: str, command: str) -> None:
        """Takes the mark of open commands away from one that has ended: it never opens again, so no condition."""
        self._writer.commit("close-command", Delete(open_command_key(sandbox, command)))

    def withdraw_command(self, sandbox: str, command: str, now: datetime) -> None:
        """It will never be run. Condition: no daemon has claimed it."""
        self._writer.commit(
            "withdraw-command",
            Update(
                command_key(sandbox, command),
                when=Equals("state", CommandState.PENDING.value),
                assign={"state": CommandState.WITHDRAWN.value, "finished_at": stamp(now)},
                remove=("outbox",),
            ),
        )

    def want_command(self, sandbox: str, command: str) -> None:
        """The line will rest and wants a kick when the command ends. Condition: it has not ended."""
        self._writer.commit(
            "want-command",
            Update(
                command_key(sandbox, command),
                when=OneOf("state", UNFINISHED),
                assign={"wake": True, "outbox": "command"},
            ),
        )

    def cancel_command(self, sandbox: str, command: str) -> None:
        """Asks the daemon to end it. Condition: it has not ended."""
        self._writer.commit(
            "cancel-command",
            Update(command_key(sandbox, command), when=OneOf("state", UNFINISHED), assign={"cancel": True}),
        )
