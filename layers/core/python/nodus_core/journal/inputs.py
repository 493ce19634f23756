"""Commits on a conversation's queue: what comes in by the one door, and what can no longer be read.

accept ──► queued ──open_turn──► opened
              └── the conversation has ended ── return_unread ──► canceled

One condition on the head decides between a message and the end of its run: whoever commits first wins (FLD-12).
"""

from collections.abc import Sequence
from dataclasses import replace

from nodus_core.journal.fence import Fence
from nodus_core.journal.keys import conversation_key, input_key, message_key
from nodus_core.journal.lines import due
from nodus_core.journal.store import Absent, Equals, Operation, Present, Put, Update, both
from nodus_core.journal.writer import Writer, stored
from nodus_core.kernel.objects import Conversation, Input, Receipt
from nodus_core.kernel.states import InputState


class Inputs:
    """Commits that accept inputs and settle those that get no turn."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def accept(self, entry: Input, receipt: Receipt, *more: Operation) -> None:
        """A further input of a conversation, with the receipt of its key; rings the bell and makes the line due.

        Condition: the conversation takes input (not ended, not stopped), the input is the next one, the key is
        new. Raises `ConditionFailed`.
        """
        key = conversation_key(entry.conversation)
        self._writer.commit(
            "accept-input",
            Update(
                key,
                when=both(
                    Present(), Equals("ended", False), Absent("stop"), Equals("accepted", entry.seq - 1)
                ),
                # Due at once: a line that waits for a message rests without a due time.
                assign={"accepted": entry.seq, "outbox": "line", **due(key.pk, entry.created_at)},
                add={"bell": 1},
            ),
            Put(stored(input_key(entry.conversation, entry.seq), entry), when=Absent()),
            Put(stored(message_key(entry.conversation, receipt.key), receipt), when=Absent()),
            *more,
        )

    def return_unread(
        self, fence: Fence, conversation: Conversation, entries: Sequence[Input]
    ) -> Conversation:
        """The next unread inputs of an ended conversation are settled without a turn.

        Condition: the fence holds, the conversation has ended; each input that is canceled was queued.
        """
        returned = conversation.returned + len(entries)
        queued = [entry for entry in entries if entry.state is InputState.QUEUED]
        self._writer.commit(
            "return-inputs",
            Update(
                conversation_key(conversation.id),
                when=both(fence.on_conversation, Equals("ended", True)),
                assign={"returned": returned},
                remove=("outbox",),
            ),
            *(
                Update(
                    input_key(entry.conversation, entry.seq),
                    when=Equals("state", InputState.QUEUED.value),
                    assign={"state": InputState.CANCELED.value},
                )
                for entry in queued
            ),
        )
        return replace(conversation, returned=returned)
