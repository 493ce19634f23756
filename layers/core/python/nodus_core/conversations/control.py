"""Ending runs from outside: cancel and delete."""

import logging
from dataclasses import dataclass, replace

from nodus_core.access.door import Place
from nodus_core.conversations.kicks import Kicks
from nodus_core.conversations.races import MOST_TRIES, contested, look_again
from nodus_core.conversations.removal import purge
from nodus_core.conversations.shelf import Outcome, Shelf, head_of, missing
from nodus_core.journal.objects import projection as projected
from nodus_core.journal.objects import versioned
from nodus_core.kernel import projection
from nodus_core.kernel.errors import ConditionFailed
from nodus_core.kernel.objects import AGENT_RUN, Conversation, Object, StopMarker
from nodus_core.kernel.stopping import CANCELLED
from nodus_core.resources.deletion import ANY, Preconditions

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Control:
    """Use cases that end runs, or the objects of another kind that have a line. Each raises `Refusal` `NotFound`, and `Conflict` after too many lost races."""

    shelf: Shelf
    kicks: Kicks
    kind: str = AGENT_RUN
    reason: str = CANCELLED

    def cancel(self, place: Place, name: str) -> tuple[Outcome, bool]:
        """Asks an unfinished run to stop; asking again is fine. Returns it, and whether it had finished already.

        From the commit of the stop marker on, no step of the run can begin (NOD-045).
        """
        obj = self._stop(place, name)
        return Outcome(obj, self.shelf.spec(obj)), finished(obj)

    def delete(self, place: Place, name: str, wanted: Preconditions = ANY) -> Outcome:
        """Cancels the run if need be and has it removed; it is gone when its sandbox is (NODQ-57, NODQ-94).

        Raises `Refusal` `Conflict`, too, when it is not the one that is wanted: it goes on then.
        """
        obj = self._stop(place, name, wanted)
        spec = self.shelf.spec(obj)
        # A run that was stopped is another version by now, and that one is ours.
        obj = self._mark(obj, wanted if finished(obj) else ANY)
        head = self.shelf.journal.conversation(obj.uid)
        if head is None or head.closed:
            self._purge(obj)
        else:
            self.kicks.nudge(obj.uid)
        return Outcome(obj, spec)

    def _stop(self, place: Place, name: str, wanted: Preconditions = ANY) -> Object:
        """The run with its stop marker set, unless it has finished or is stopped."""

        def attempt() -> Object:
            obj = self.shelf.find(place, self.kind, name)
            wanted.check(obj)
            if finished(obj):
                return obj
            with self.shelf.reading(obj):
                head = head_of(self.shelf.journal, obj)
            if head.stop is None:
                obj = self._set_marker(obj, head, place.caller)
            self.kicks.nudge(obj.uid)
            return obj

        return look_again(self.kind, name, attempt)

    def _set_marker(self, obj: Object, head: Conversation, by: str) -> Object:
        now = self.shelf.clock.now()
        shown = versioned(replace(obj, status=projection.stopping(obj.status, self.reason)), now)
        shows = projected(shown, now, over=obj.version)
        self.shelf.journal.turns.stop(head, StopMarker(now, by, self.reason), shows)
        return shown

    def _mark(self, obj: Object, wanted: Preconditions) -> Object:
        for _ in range(MOST_TRIES):
            if obj.deleted_at is not None:
                return obj
            try:
                return self.shelf.journal.objects.mark_deleted(obj, self.shelf.clock.now())
            except ConditionFailed:
                current = self.shelf.journal.object(obj.key)
                if current is None or current.uid != obj.uid:
                    raise missing(self.kind, obj.key.name) from None
                wanted.check(current)
                obj = current
        raise contested(self.kind, obj.key.name)

    def _purge(self, obj: Object) -> None:
        """Removes a run that nothing works on; one that another removes meanwhile is gone as well."""
        for _ in range(MOST_TRIES):
            try:
                return purge(self.shelf.journal, self.shelf.payloads, self.shelf.clock, obj)
            except ConditionFailed as lost:
                log.info("%s %s changed while it was removed: %s", self.kind, obj.key.name, lost)
            current = self.shelf.journal.object(obj.key)
            if current is None or current.uid != obj.uid:
                return None
            obj = current
        raise contested(self.kind, obj.key.name)


def finished(obj: Object) -> bool:
    """Whether a run shows a phase that never changes again."""
    return obj.status.get("phase") in projection.FINAL_PHASES
