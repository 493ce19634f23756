"""Commits on the saves of a sandbox's folder, each under the line's fence.

begin-save ──► (the command's own commits) ──► complete-save ──► drop-saves (what is not kept any more)
                                            └► fail-save ──────► drop-saves (what may stand half in the store)
request-sandbox, -machine (`restore`) ──► place-restore ──► … ──► restored
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from nodus_core.journal.codec import to_row, to_value
from nodus_core.journal.fence import Fence
from nodus_core.journal.keys import conversation_key, sandbox_key
from nodus_core.journal.owning import placed
from nodus_core.journal.store import Absent, Check, Condition, Equals, OneOf, Operation, Row, Update, both
from nodus_core.journal.writer import Writer
from nodus_core.kernel.objects import Conversation
from nodus_core.kernel.sandboxes import Command, Sandbox
from nodus_core.kernel.saving import Save, Saving
from nodus_core.kernel.states import ALIVE_SANDBOXES, SandboxState

_ALIVE = tuple(state.value for state in ALIVE_SANDBOXES)
_UP = both(Equals("state", SandboxState.RUNNING.value), Absent("restore"))


class Saves:
    """Each commit raises `ConditionFailed`: look again and decide anew. `more` is the status projection."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    def begin(
        self,
        fence: Fence,
        head: Conversation,
        saving: Saving,
        command: Command,
        *,
        steps: int,
        more: Sequence[Operation],
    ) -> Conversation:
        """A save is asked of the daemon; `steps` is how many steps the folder has seen.

        Condition: the fence holds, none is under way, the sandbox is the conversation's and runs.
        """
        after = replace(
            head, saving=saving, saves_begun=head.saves_begun + 1, save_begun_at=saving.at, saved_steps=steps
        )
        self._writer.commit(
            "begin-save",
            Update(
                conversation_key(head.id),
                when=both(fence.on_conversation, Absent("saving"), Equals("sandbox", saving.sandbox)),
                assign={
                    "saving": to_row(saving),
                    "saves_begun": after.saves_begun,
                    "save_begun_at": to_value(saving.at),
                    "saved_steps": steps,
                },
                remove=("outbox",),
            ),
            Check(sandbox_key(saving.sandbox), _UP),
            *placed((command,)),
            *more,
        )
        return after

    def complete(
        self,
        fence: Fence,
        head: Conversation,
        save: Save,
        *,
        parting: Condition | None,
        more: Sequence[Operation],
    ) -> Conversation:
        """From now on this is what a start restores. With `parting`, the sandbox is released in the same commit.

        Condition: the fence holds, the save is the one under way, and `parting` holds of the head.
        """
        after = replace(head, saving=None, saves=(save, *head.saves))
        saves = {"saves": to_value(after.saves)}
        self._end("complete-save", fence, head, assign=saves, parting=parting, more=more)
        return after

    def fail(
        self, fence: Fence, head: Conversation, *, parting: Condition | None, more: Sequence[Operation]
    ) -> Conversation:
        """The save under way has not been completed: what was saved before stays. `parting` as above."""
        saving = head.saving
        unkept = (*head.unkept, saving.name) if saving else head.unkept
        after = replace(head, saving=None, unkept=unkept)
        self._end("fail-save", fence, head, assign={"unkept": to_value(unkept)}, parting=parting, more=more)
        return after

    def drop(self, fence: Fence, head: Conversation, names: Sequence[str]) -> Conversation:
        """Archives of these names are gone from the store. Condition: the fence holds."""
        saving = head.saving if head.saving is not None and head.saving.name not in names else None
        after = replace(
            head,
            saving=saving,
            saves=tuple(save for save in head.saves if save.name not in names),
            unkept=tuple(name for name in head.unkept if name not in names),
        )
        kept = {"saves": after.saves, "unkept": after.unkept, "saving": saving}
        self._writer.commit(
            "drop-saves",
            Update(
                conversation_key(head.id),
                when=fence.on_conversation,
                assign={name: to_value(value) for name, value in kept.items() if value},
                remove=("outbox", *(name for name, value in kept.items() if not value)),
            ),
        )
        return after

    def place_restore(self, fence: Fence, sandbox: Sandbox, command: Command) -> None:
        """The daemon is asked for the folder. Condition: the fence holds, the sandbox runs and still lacks it."""
        self._writer.commit(
            "place-restore",
            Check(conversation_key(fence.conversation), fence.on_conversation),
            Check(sandbox_key(sandbox.id), _lacks(sandbox)),
            *placed((command,)),
        )

    def restored(self, fence: Fence, sandbox: Sandbox, saved_at: datetime) -> Sandbox:
        """The folder is there as it was saved then: commands may begin. Condition as above."""
        self._writer.commit(
            "restored",
            Update(
                sandbox_key(sandbox.id),
                when=_lacks(sandbox),
                assign={"restored_at": to_value(saved_at)},
                remove=("restore", "outbox"),
            ),
            Check(conversation_key(fence.conversation), fence.on_conversation),
        )
        return replace(sandbox, restore=None, restored_at=saved_at)

    def _end(
        self,
        name: str,
        fence: Fence,
        head: Conversation,
        *,
        assign: Row,
        parting: Condition | None,
        more: Sequence[Operation],
    ) -> None:
        saving = head.saving
        if saving is None:
            raise ValueError(f"conversation {head.id} makes no save that could end")
        same = both(fence.on_conversation, Equals("saving.name", saving.name))
        released: tuple[Operation, ...] = ()
        if parting is not None:
            same = both(same, parting)
            released = (
                Update(
                    sandbox_key(saving.sandbox),
                    when=OneOf("state", _ALIVE),
                    assign={"state": SandboxState.RELEASING.value, "parting": saving.parting},
                    remove=("outbox",),
                ),
            )
        self._writer.commit(
            name,
            Update(conversation_key(head.id), when=same, assign=assign, remove=("saving", "outbox")),
            *released,
            *more,
        )


def _lacks(sandbox: Sandbox) -> Condition:
    return both(Equals("state", SandboxState.RUNNING.value), Equals("restore", sandbox.restore or ""))
