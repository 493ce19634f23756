"""What a conversation gets of sandboxes: a new one of its own, and commands in it. Parts of other commits."""

from collections.abc import Iterable
from dataclasses import replace

from nodus_core.journal.fence import Fence
from nodus_core.journal.keys import command_key, conversation_key, live_shard, open_command_key, sandbox_key
from nodus_core.journal.sandboxes import BOOKED
from nodus_core.journal.store import Absent, Check, Condition, Equals, Operation, Put, Row, Update, both
from nodus_core.journal.writer import stored
from nodus_core.kernel.objects import Conversation
from nodus_core.kernel.sandboxes import Command, Sandbox
from nodus_core.kernel.times import stamp


def requested(
    fence: Fence, conversation: Conversation, sandbox: Sandbox, *more: Condition
) -> tuple[Operation, ...]:
    """Operations by which a conversation owns a new sandbox, whose row exists before the provider makes it (FLD-10).

    Condition: the fence holds; the sandbox before, if there is one, is the one seen, which is gone and booked; and
    what `more` says of the conversation's head.
    """
    former = conversation.sandbox
    same = Absent("sandbox") if former is None else Equals("sandbox", former)
    after = owning(conversation, sandbox)
    owner = Update(
        conversation_key(conversation.id),
        when=both(fence.on_conversation, same, *more),
        assign={"sandbox": after.sandbox, "sandboxes": after.sandboxes, "attempts": after.attempts},
        remove=("outbox",),
    )
    before = (Check(sandbox_key(former), BOOKED),) if former else ()
    row = stored(sandbox_key(sandbox.id), sandbox, **live(sandbox))
    return owner, Put(row, when=Absent()), *before


def live(sandbox: Sandbox) -> Row:
    """Attributes that keep a sandbox's row among those that are not gone; the commit of its end takes them away."""
    return {
        "dueShard": live_shard(sandbox_key(sandbox.id).pk),
        "dueAt": stamp(sandbox.created_at),
    }


def owning(conversation: Conversation, sandbox: Sandbox) -> Conversation:
    """The conversation once it owns a new sandbox."""
    return replace(
        conversation,
        sandbox=sandbox.id,
        sandboxes=conversation.sandboxes + 1,
        attempts=conversation.attempts + 1,
    )


def placed(commands: Iterable[Command]) -> Iterable[Put]:
    """Operations that place commands for a daemon: the row of each, and the mark by which it is found."""
    for command in commands:
        yield Put(stored(command_key(command.sandbox, command.id), command), when=Absent())
        mark = open_command_key(command.sandbox, command.id)
        yield Put({"pk": mark.pk, "sk": mark.sk, "command": command.id})
