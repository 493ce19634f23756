"""Messages to a run: each is accepted once by its key and gets a turn, or it is refused (FLD-12, NOD-179 … NOD-184)."""

import json
import logging
from dataclasses import dataclass, replace
from datetime import datetime

from nodus_core.access.door import Place
from nodus_core.conversations.kicks import Kicks
from nodus_core.conversations.races import contested
from nodus_core.conversations.shelf import Shelf, head_of, scope_of
from nodus_core.journal.objects import projection as projected
from nodus_core.journal.objects import versioned
from nodus_core.journal.store import Operation
from nodus_core.kernel import projection
from nodus_core.kernel.errors import ConditionFailed, Refusal
from nodus_core.kernel.ids import digest
from nodus_core.kernel.objects import AGENT_RUN, Conversation, Input, Object, Receipt
from nodus_core.kernel.states import InputState
from nodus_core.kernel.stopping import DEADLINE_EXCEEDED, is_overdue
from nodus_core.kernel.times import moment, stamp
from nodus_core.resources.message import Message

MOST_LOST_RACES = 64
"""Messages that others may get in first, one after the other, before a sender is told to try again."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Accepted:
    """What a sender is told: the turn that the message gets. `replayed`: it was accepted by an earlier call."""

    run: str
    message_key: str
    turn: int
    at: datetime
    replayed: bool = False


@dataclass(frozen=True)
class Messages:
    """The door for messages of persons."""

    shelf: Shelf
    kicks: Kicks

    def send(self, place: Place, name: str, message: Message) -> Accepted:
        """Accepts a message; the order of acceptance is the order of the turns.

        The same key and text again is told what the first was told, also after the run's end (NODQ-17). Raises
        `Refusal`: `NotFound`, `AgentRunFinished` when the run takes no message any more, `MessageKeyConflict`
        when the key stands for another text, `Conflict` after too many lost races.
        """
        for _ in range(MOST_LOST_RACES):
            obj = self.shelf.find(place, AGENT_RUN, name)
            with self.shelf.reading(obj):
                head = head_of(self.shelf.journal, obj)
            # The head before the receipt: what was accepted before an end that was seen is then seen as well.
            receipt = self.shelf.journal.message(obj.uid, message.message_key)
            if receipt is not None:
                return _as_before(name, receipt, message)
            _check_open(name, head, self.shelf.clock.now())
            try:
                accepted = self._accept(obj, head, message, place.caller)
            except ConditionFailed as lost:
                log.info("message to run %s looks again: %s", name, lost)
                continue
            self.kicks.nudge(obj.uid)
            return accepted
        raise contested(AGENT_RUN, name)

    def _accept(self, obj: Object, head: Conversation, message: Message, author: str) -> Accepted:
        text = self.shelf.payloads.put(scope_of(obj), message.payload)
        now = self.shelf.clock.now()
        entry = Input(
            conversation=head.id,
            seq=head.accepted + 1,
            text=text,
            state=InputState.QUEUED,
            origin="person",
            author=author,
            created_at=now,
            message_key=message.message_key,
        )
        facts = json.dumps({"turn": entry.seq, "at": stamp(now)})
        receipt = Receipt(message.message_key, digest(message.payload), facts, now)
        self.shelf.journal.inputs.accept(entry, receipt, *_shown(obj, now))
        return _accepted(obj.key.name, receipt)


def _shown(obj: Object, now: datetime) -> tuple[Operation, ...]:
    """A run that waits for a message does so no longer, from the commit on that accepts one."""
    if not projection.awaits_message(obj.status):
        return ()
    status = projection.resumed(obj.status)
    working = versioned(replace(obj, status=status), now)
    return projected(working, now, over=obj.version)


def _check_open(name: str, head: Conversation, now: datetime) -> None:
    """Raises `Refusal` `AgentRunFinished` for a run that takes no more messages."""
    if head.ended:
        what = "has finished"
    elif head.stop is not None or is_overdue(head, now):
        what = f"is ending ({head.stop.reason if head.stop else DEADLINE_EXCEEDED})"
    else:
        return
    message = f"AgentRun {name!r} {what} and takes no more messages; start a new run"
    raise Refusal("AgentRunFinished", message, kind=AGENT_RUN, name=name)


def _as_before(name: str, receipt: Receipt, message: Message) -> Accepted:
    if receipt.digest != digest(message.payload):
        text = (
            f"messageKey {message.message_key!r} was used for another message to AgentRun {name!r}; nothing was "
            "delivered: take a new key for a new message"
        )
        raise Refusal("MessageKeyConflict", text, kind=AGENT_RUN, name=name)
    return replace(_accepted(name, receipt), replayed=True)


def _accepted(name: str, receipt: Receipt) -> Accepted:
    facts = json.loads(receipt.facts)
    return Accepted(name, receipt.key, facts["turn"], moment(facts["at"]))
