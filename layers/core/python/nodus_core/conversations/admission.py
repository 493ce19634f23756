"""Admitting a run: everything it needs is pinned in one commit, then its line is started (NOD-031, NOD-036)."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from nodus_core.access.door import Place
from nodus_core.conversations import promises
from nodus_core.conversations.batch_keeping import BatchKeeping
from nodus_core.conversations.beginnings import begin
from nodus_core.conversations.images import Images
from nodus_core.conversations.pinning import pinned
from nodus_core.conversations.promises import Promise
from nodus_core.conversations.races import look_again
from nodus_core.conversations.shelf import Outcome, Shelf, check_free, key_of, named, scope_of
from nodus_core.journal.objects import versioned
from nodus_core.journal.ports import Executions, Ids, Schedules
from nodus_core.kernel.errors import Refusal
from nodus_core.kernel.objects import AGENT_RUN, Object
from nodus_core.resources.agentrun import with_moment
from nodus_core.resources.manifest import Manifest, merged
from nodus_core.resources.patch import immutable, same

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Admission:
    """Admits runs. A refusal has stored nothing and started nothing."""

    shelf: Shelf
    executions: Executions
    schedules: Schedules
    ids: Ids
    images: Images

    @property
    def _keeping(self) -> BatchKeeping:
        return BatchKeeping(self.shelf)

    def admit_run(self, place: Place, manifest: Manifest, promised: Promise | None = None) -> Outcome:
        """A new run, queued and started.

        Raises `Refusal`: `AlreadyExists`, `NotFound` naming the agent, `AgentStopped`, `NotAvailable`,
        `IdempotencyKeyConflict`, `Invalid` for a deadline in the past or beyond ten years, `Conflict` after too many lost races.
        """
        uid = self.ids.fresh("run")

        def attempt() -> Outcome:
            now, wanted = self.shelf.clock.now(), named(manifest, self.ids)
            key = key_of(place, AGENT_RUN, wanted.name)
            # The name before the receipt: an equal call that takes both in between is then seen as what it is.
            taken = self.shelf.journal.object(key) is not None
            receipt = promised and promises.kept(self.shelf.journal, promised, now)
            if receipt:
                first = promises.first_outcome(receipt, key, manifest)
                spec = with_moment(manifest.spec, first.created_at)
                return Outcome(first, spec, created=True, replayed=True)
            check_free(manifest, wanted, taken=taken)
            return self._admit(place, uid, wanted, promised)

        # The name was taken, the agent changed, or an equal call was faster.
        return look_again(AGENT_RUN, manifest.name, attempt, self._keeping.way_maker())

    def apply(self, place: Place, manifest: Manifest) -> Outcome:
        """The run as the manifest has it: admitted when there is none, else unchanged (NOD-052).

        Raises `Refusal`: `Invalid` for another spec (NOD-051), `Conflict`, and what `admit_run` raises.
        """

        def attempt() -> Outcome:
            old = self.shelf.journal.object(key_of(place, AGENT_RUN, manifest.name))
            if old is not None:
                return self._keep(old, manifest, exact=False)
            return self._admit(place, self.ids.fresh("run"), manifest, None)

        return look_again(AGENT_RUN, manifest.name, attempt, self._keeping.way_maker())

    def update(self, place: Place, manifest: Manifest) -> Outcome:
        """The run with the manifest's labels and annotations. `NotFound`, `Invalid` for another spec, `Conflict`."""

        def attempt() -> Outcome:
            return self._keep(
                self.shelf.find(place, AGENT_RUN, manifest.name), manifest.complete(), exact=True
            )

        return look_again(AGENT_RUN, manifest.name, attempt)

    def patch(self, place: Place, name: str, patch: Mapping[str, Any]) -> Outcome:
        """The run with a merge patch, which may change its labels and annotations only. `NotFound`, `Invalid`, `Conflict`."""

        def attempt() -> Outcome:
            old = self.shelf.find(place, AGENT_RUN, name)
            return self._keep(old, merged(self.shelf.manifest(old), place.project, patch), exact=True)

        return look_again(AGENT_RUN, name, attempt)

    def _keep(self, old: Object, manifest: Manifest, *, exact: bool) -> Outcome:
        """An admitted run with its own spec, perhaps with other labels."""
        if old.deleted_at is not None:
            message = f"AgentRun {manifest.name!r} is being deleted; wait until it is gone"
            raise Refusal("Conflict", message, kind=AGENT_RUN, name=manifest.name)
        spec = self.shelf.spec(old)
        manifest = replace(manifest, spec=with_moment(manifest.spec, old.created_at))
        if not same(spec, manifest.spec):
            raise immutable(AGENT_RUN, manifest.name, spec, manifest.spec)
        return self.shelf.revise(old, manifest, exact=exact)

    def _admit(self, place: Place, uid: str, manifest: Manifest, promised: Promise | None) -> Outcome:
        run = pinned(self.images, place, uid, manifest, self.shelf.clock.now())
        now = self.shelf.clock.now()
        obj = versioned(run.object, now)
        receipt = promises.receipt_of(promised, obj, now) if promised else None
        objects = self.shelf.journal.objects
        with self.shelf.making(scope_of(obj)):
            objects.admit(obj, run.conversation, run.first, now, agent=run.agent, receipt=receipt)
        begin(self.executions, self.schedules, run.conversation)
        return Outcome(obj, run.spec, created=True)
