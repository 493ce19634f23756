"""Commits on the line of a Sandbox: its machine is asked for, and stands still.

want (from outside) ──► request ──► (a sandbox's own commits) ──► settle ──► rest
                            pause ──────────────────────────────────┘
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from nodus_core.journal.fence import Fence
from nodus_core.journal.keys import conversation_key, sandbox_key
from nodus_core.journal.lines import due
from nodus_core.journal.owning import owning, placed, requested
from nodus_core.journal.receipts import remember
from nodus_core.journal.sandboxes import BOOKED
from nodus_core.journal.store import Absent, Check, Equals, Operation, Present, Update, both
from nodus_core.journal.writer import Writer
from nodus_core.kernel.objects import Conversation, Receipt
from nodus_core.kernel.sandboxes import Command, Sandbox
from nodus_core.kernel.states import SandboxState
from nodus_core.kernel.times import stamp


class Machines:
    """Each commit raises `ConditionFailed`: look again and decide anew."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def want(
        self, conversation: Conversation, paused: str | None, now: datetime, more: Sequence[Operation]
    ) -> None:
        """The machine is wanted to run, or to stand still for a reason; the line is due at once.

        `more` is the status projection. Condition: what was wanted is what was seen, and nobody stopped the line.
        """
        key = conversation_key(conversation.id)
        seen = Absent("paused") if conversation.paused is None else Equals("paused", conversation.paused)
        self._writer.commit(
            "want-machine",
            Update(
                key,
                when=both(Present(), Absent("stop"), Equals("ended", False), seen),
                assign={**({"paused": paused} if paused else {}), "outbox": "line", **due(key.pk, now)},
                remove=() if paused else ("paused",),
                add={"bell": 1},
            ),
            *more,
        )

    def place(self, conversation: Conversation, command: Command, receipt: Receipt, now: datetime) -> None:
        """A person's command goes to the machine; its line is due, and rings where the one who placed it was not heard.

        `receipt` keeps the request key. Condition: the machine runs and is wanted to, the key is free.
        """
        key = conversation_key(conversation.id)
        self._writer.commit(
            "place-command",
            remember(receipt, now),
            _works(command.sandbox, now),
            Update(
                key,
                when=both(Equals("sandbox", command.sandbox), Absent("paused"), Absent("stop")),
                assign={"outbox": "line", **due(key.pk, now)},
                add={"bell": 1},
            ),
            *placed((command,)),
        )

    def place_beside(self, command: Command, receipt: Receipt, now: datetime) -> None:
        """A person's command goes to a run's sandbox; the run's line knows nothing of it (NOD-445).

        `receipt` keeps the request key. Condition: the sandbox runs, the key is free.
        """
        self._writer.commit(
            "place-beside", remember(receipt, now), _works(command.sandbox, now), *placed((command,))
        )

    def works(self, sandbox: str, now: datetime) -> None:
        """Something is still being done in the machine. Condition: it runs."""
        self._writer.commit("machine-works", _works(sandbox, now))

    def request(
        self, fence: Fence, conversation: Conversation, sandbox: Sandbox, more: Sequence[Operation]
    ) -> Conversation:
        """The machine's row exists before the provider makes it (FLD-10).

        `more` is the status projection, and what accounts hold for its first period. Condition: the fence holds,
        the line has no machine, it is wanted to run, nobody stopped it.
        """
        wanted = both(Absent("paused"), Absent("stop"))
        self._writer.commit("request-machine", *requested(fence, conversation, sandbox, wanted), *more)
        return owning(conversation, sandbox)

    def pause(
        self, fence: Fence, conversation: Conversation, reason: str, more: Sequence[Operation] = ()
    ) -> Conversation:
        """From now on it is wanted to stand still. Condition: the fence holds, and it was wanted to run."""
        self._writer.commit(
            "pause-machine",
            Update(
                conversation_key(conversation.id),
                when=both(fence.on_conversation, Absent("paused")),
                assign={"paused": reason},
                remove=("outbox",),
            ),
            *more,
        )
        return replace(conversation, paused=reason)

    def settle(
        self,
        fence: Fence,
        conversation: Conversation,
        sandbox: Sandbox,
        reason: str,
        more: Sequence[Operation],
    ) -> Conversation:
        """The line lets go of a machine that is gone, and shows why it stands still.

        Condition: the fence holds, it is the line's machine, its time is booked, and what was wanted is what was seen.
        """
        seen = Absent("paused") if conversation.paused is None else Equals("paused", conversation.paused)
        self._writer.commit(
            "settle-machine",
            Update(
                conversation_key(conversation.id),
                when=both(fence.on_conversation, Equals("sandbox", sandbox.id), seen),
                assign={"paused": reason},
                remove=("sandbox", "outbox"),
            ),
            Check(sandbox_key(sandbox.id), BOOKED),
            *more,
        )
        return replace(conversation, sandbox=None, paused=reason)


def _works(sandbox: str, now: datetime) -> Update:
    return Update(
        sandbox_key(sandbox),
        when=both(Equals("state", SandboxState.RUNNING.value), Absent("restore")),
        assign={"worked_at": stamp(now)},
        remove=("outbox",),
    )
