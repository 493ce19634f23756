"""Creating up to 100 runs together: all of them, in the order of the list, or none (NOD-360 … NOD-364, decision 17)."""

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from nodus_core.access.door import Place
from nodus_core.conversations import promises
from nodus_core.conversations.admission import Admission
from nodus_core.conversations.batch_keeping import BatchKeeping
from nodus_core.conversations.beginnings import ask_for_kick
from nodus_core.conversations.pinning import Admitted, pinned
from nodus_core.conversations.promises import Promise
from nodus_core.conversations.races import MOST_TRIES, contested
from nodus_core.conversations.shelf import Outcome, exists, key_of, named, scope_of
from nodus_core.journal.batches import MOST_AGENTS, SLICE, Staged
from nodus_core.journal.changes import next_version
from nodus_core.kernel.errors import Cause, ConditionFailed, NodusError, Refusal
from nodus_core.kernel.objects import AGENT_RUN, Batch, Line
from nodus_core.resources.agentrun import with_moment
from nodus_core.resources.manifest import Manifest
from nodus_core.resources.refusals import of_item

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Batches:
    """Use cases of batches. A refusal has stored nothing."""

    admission: Admission

    def create(self, place: Place, manifests: Sequence[Manifest], promised: Promise) -> list[Outcome]:
        """The new runs, queued and started, in the order of the list.

        Raises `Refusal`: what a single create raises, naming the item; `Invalid` for a name that is given twice or
        for too many agents, `IdempotencyKeyConflict`, `Conflict` after too many lost races.
        """
        _check_names(manifests)
        _check_agents(manifests)
        make_way = self._keeping.way_maker()
        for _ in range(MOST_TRIES):
            taken = self._taken(place, manifests)
            known = self._first(place, manifests, promised)
            if known is not None:
                return known
            if taken is not None:
                raise of_item(taken, exists(AGENT_RUN, manifests[taken].name))
            try:
                return self._create(place, manifests, promised)
            except ConditionFailed as lost:
                # A name was taken, an agent changed, or an equal call was faster: look again.
                log.info("a batch of %s runs looks again: %s", len(manifests), lost)
                make_way(lost)
        raise contested(AGENT_RUN, manifests[0].name)

    @property
    def _keeping(self) -> BatchKeeping:
        return BatchKeeping(self.admission.shelf)

    def _taken(self, place: Place, manifests: Sequence[Manifest]) -> int | None:
        """The first item whose name an object has."""
        found = self.admission.shelf.journal.objects_at(
            [key_of(place, AGENT_RUN, item.name) for item in manifests]
        )
        return next((number for number, obj in enumerate(found) if obj is not None), None)

    def _first(self, place: Place, manifests: Sequence[Manifest], promised: Promise) -> list[Outcome] | None:
        """What the first call with this key was answered."""
        shelf = self.admission.shelf
        receipt = promises.kept(shelf.journal, promised, shelf.clock.now())
        if receipt is None:
            return None
        outcomes: list[Outcome] = []
        for facts, item in zip(json.loads(receipt.facts), manifests, strict=True):
            first = promises.outcome_of(facts, key_of(place, AGENT_RUN, item.name), item)
            spec = with_moment(item.spec, first.created_at)
            outcomes.append(Outcome(first, spec, created=True, replayed=True))
        return outcomes

    def _create(self, place: Place, manifests: Sequence[Manifest], promised: Promise) -> list[Outcome]:
        """One try. Raises `Refusal`, and `ConditionFailed` when something has changed meanwhile."""
        now = self.admission.shelf.clock.now()
        runs = self._prepare(place, self._named(manifests), now)
        batch = Batch(
            self.admission.ids.fresh("batch"),
            place.org,
            place.project,
            tuple(run.object.key.name for run in runs),
            tuple(run.object.uid for run in runs),
            now,
        )
        try:
            self.admission.shelf.journal.batches.open(batch)
        except Exception:
            # Nothing is staged, and nobody else will: should the batch be there, it is aborted when its time is over.
            self._forget(runs)
            raise
        try:
            self._commit(batch, runs, promised, now)
        except NodusError:
            self._abandon(batch)
            raise
        self._begin(batch, runs)
        return [Outcome(run.object, run.spec, created=True) for run in runs]

    def _named(self, manifests: Sequence[Manifest]) -> list[Manifest]:
        """Each under a name of its own."""
        taken = {item.name for item in manifests if item.name}
        found: list[Manifest] = []
        for item in manifests:
            wanted = named(item, self.admission.ids)
            while not item.name and wanted.name in taken:
                wanted = named(item, self.admission.ids)
            taken.add(wanted.name)
            found.append(wanted)
        return found

    def _prepare(self, place: Place, manifests: Sequence[Manifest], now: datetime) -> list[Admitted]:
        """The runs as they are to be, each with a version above the one before."""
        runs: list[Admitted] = []
        version = 0
        for number, item in enumerate(manifests):
            try:
                uid = self.admission.ids.fresh("run")
                run = pinned(self.admission.images, place, uid, item, now)
            except Refusal as refusal:
                self._forget(runs)
                raise of_item(number, refusal) from None
            except Exception:
                self._forget(runs)
                raise
            version = next_version(version, now)
            # No execution is started with the commit: the line is due as soon as it is shown.
            waiting = replace(run.conversation, line=Line(0))
            runs.append(replace(run, object=replace(run.object, version=version), conversation=waiting))
        return runs

    def _forget(self, runs: Sequence[Admitted]) -> None:
        """Removes texts that were kept for runs which will not be."""
        for run in runs:
            self.admission.shelf.forget(scope_of(run.object))

    def _commit(
        self,
        batch: Batch,
        runs: Sequence[Admitted],
        promised: Promise,
        now: datetime,
    ) -> None:
        batches = self.admission.shelf.journal.batches
        # In the order of names: of batches that want the same ones, the first to take one meets no other behind it.
        staged = sorted(runs, key=lambda run: run.object.key.name)
        for start in range(0, len(staged), SLICE):
            part = staged[start : start + SLICE]
            batches.stage(batch, [Staged(run.object, run.conversation, run.first) for run in part])
        receipt = promises.receipt_of_all(promised, [run.object for run in runs], now)
        agents = {run.agent.key: run.agent for run in runs}
        batches.commit(batch, agents.values(), receipt, self.admission.shelf.clock.now())

    def _abandon(self, batch: Batch) -> None:
        """Frees the names, unless the batch was committed and only the answer was lost."""
        try:
            self._keeping.give_up(batch)
            self._keeping.finish(batch.id)
        except NodusError as error:
            log.warning("batch %s is brought to its end by the sweeper: %s", batch.id, error)

    def _begin(self, batch: Batch, runs: Sequence[Admitted]) -> None:
        """The runs are there; whatever becomes of this fails no answer: the sweeper does the same."""
        try:
            self._keeping.finish(batch.id)
        except Exception:
            log.exception("batch %s is shown by the sweeper", batch.id)
        for run in runs:
            ask_for_kick(self.admission.schedules, run.conversation)


def _check_agents(manifests: Sequence[Manifest]) -> None:
    """Refuses more agents than one commit can make sure of, before anything is stored."""
    agents = {str(item.spec["agent"]) for item in manifests}
    if len(agents) > MOST_AGENTS:
        cause = Cause("items", f"name {len(agents)} agents, at most {MOST_AGENTS} are taken; split it")
        raise Refusal("Invalid", f"{cause.field}: {cause.message}", causes=(cause,))


def _check_names(manifests: Sequence[Manifest]) -> None:
    seen: dict[str, int] = {}
    for number, item in enumerate(manifests):
        first = seen.setdefault(item.name, number)
        if item.name and first != number:
            cause = Cause(f"items[{number}].metadata.name", f"is the name of items[{first}] already")
            raise Refusal("Invalid", f"{cause.field}: {cause.message}", causes=(cause,))
