"""Admitting a run: everything it needs is pinned in one commit, then its line is started (NOD-031, NOD-036)."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

from nodus_core.access.door import Place
from nodus_core.conversations import promises
from nodus_core.conversations.agents import agent_named
from nodus_core.conversations.availability import check_available
from nodus_core.conversations.batch_keeping import BatchKeeping
from nodus_core.conversations.context import Context, ModelChoice
from nodus_core.conversations.own_keys import check_own_key
from nodus_core.conversations.promises import Promise
from nodus_core.conversations.shelf import (
    MOST_TRIES,
    Outcome,
    Shelf,
    as_text,
    check_unseen,
    contested,
    exists,
    key_of,
    named,
    scope_of,
)
from nodus_core.inference.exchange import DEFAULT_MAX_TOKENS
from nodus_core.inference.own_keys import WIRES
from nodus_core.inference.target import OwnKey
from nodus_core.journal.lines import LEASE
from nodus_core.journal.objects import versioned
from nodus_core.journal.payloads import Scope
from nodus_core.journal.ports import Executions, Ids, Schedules
from nodus_core.kernel import projection
from nodus_core.kernel.errors import Cause, ConditionFailed, Refusal
from nodus_core.kernel.objects import Conversation, Input, Line, Object
from nodus_core.kernel.states import InputState
from nodus_core.kernel.text import Text
from nodus_core.resources import defaults
from nodus_core.resources.agent import STOPPED, AgentSpec
from nodus_core.resources.agentrun import AgentRunSpec, deadline, with_moment
from nodus_core.resources.fields import money
from nodus_core.resources.inference_source import ModelSpec
from nodus_core.resources.manifest import Manifest, check_spec, merged
from nodus_core.resources.patch import immutable, same
from nodus_core.resources.refusals import invalid
from nodus_core.resources.selectors import selectable

KIND = "AgentRun"
FIRST_GENERATION = 1
LATEST_DEADLINE = timedelta(days=3653)
"""Ten years: no run needs more, and all that is reckoned from such a moment stays a date."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Agent:
    """An agent as it was read: its object (whose version the admission checks) and its spec."""

    object: Object
    spec: AgentSpec


@dataclass(frozen=True)
class Admitted:
    """A run that may be stored: its rows, the agent that the commit makes sure of, and the spec as it is answered."""

    object: Object
    conversation: Conversation
    first: Input
    agent: Object
    spec: dict[str, Any]


@dataclass(frozen=True)
class Admission:
    """Admits runs. A refusal has stored nothing and started nothing."""

    shelf: Shelf
    executions: Executions
    schedules: Schedules
    ids: Ids

    @property
    def _keeping(self) -> BatchKeeping:
        return BatchKeeping(self.shelf)

    def admit_run(self, place: Place, manifest: Manifest, promised: Promise | None = None) -> Outcome:
        """A new run, queued and started.

        Raises `Refusal`: `AlreadyExists`, `NotFound` naming the agent, `AgentStopped`, `NotAvailable`,
        `IdempotencyKeyConflict`, `Invalid` for a deadline in the past or beyond ten years, `Conflict` after too many lost races.
        """
        uid, wanted = self.ids.fresh("run"), manifest
        for _ in range(MOST_TRIES):
            now, wanted = self.shelf.clock.now(), named(manifest, self.ids)
            key = key_of(place, KIND, wanted.name)
            # The name before the receipt: an equal call that takes both in between is then seen as what it is.
            taken = self.shelf.journal.object(key) is not None
            receipt = promised and promises.kept(self.shelf.journal, promised, now)
            if receipt:
                first = promises.first_outcome(receipt, key, manifest)
                spec = with_moment(manifest.spec, first.created_at)
                return Outcome(first, spec, created=True, replayed=True)
            if taken and manifest.name:
                raise exists(KIND, manifest.name)
            if taken:
                continue
            try:
                return self._admit(place, uid, wanted, promised)
            except ConditionFailed as lost:
                # The name was taken, the agent changed, or an equal call was faster: look again.
                log.info("run %s looks again: %s", wanted.name, lost)
                self._keeping.make_way(lost)
        raise contested(KIND, wanted.name)

    def apply(self, place: Place, manifest: Manifest) -> Outcome:
        """The run as the manifest has it: admitted when there is none, else unchanged (NOD-052).

        Raises `Refusal`: `Invalid` for another spec (NOD-051), `Conflict`, and what `admit_run` raises.
        """
        for _ in range(MOST_TRIES):
            old = self.shelf.journal.object(key_of(place, KIND, manifest.name))
            try:
                if old is not None:
                    return self._keep(old, manifest, exact=False)
                return self._admit(place, self.ids.fresh("run"), manifest, None)
            except ConditionFailed as lost:
                log.info("run %s looks again: %s", manifest.name, lost)
                self._keeping.make_way(lost)
        raise contested(KIND, manifest.name)

    def update(self, place: Place, manifest: Manifest) -> Outcome:
        """The run with the manifest's labels and annotations. `NotFound`, `Invalid` for another spec, `Conflict`."""
        for _ in range(MOST_TRIES):
            old = self.shelf.find(place, KIND, manifest.name)
            try:
                return self._keep(old, manifest.complete(), exact=True)
            except ConditionFailed as lost:
                log.info("run %s looks again: %s", manifest.name, lost)
        raise contested(KIND, manifest.name)

    def patch(self, place: Place, name: str, patch: Mapping[str, Any]) -> Outcome:
        """The run with a merge patch, which may change its labels and annotations only. `NotFound`, `Invalid`, `Conflict`."""
        for _ in range(MOST_TRIES):
            old = self.shelf.find(place, KIND, name)
            try:
                return self._keep(old, merged(self.shelf.manifest(old), place.project, patch), exact=True)
            except ConditionFailed as lost:
                log.info("run %s looks again: %s", name, lost)
        raise contested(KIND, name)

    def _keep(self, old: Object, manifest: Manifest, *, exact: bool) -> Outcome:
        """An admitted run with its own spec, perhaps with other labels."""
        if old.deleted_at is not None:
            message = f"AgentRun {manifest.name!r} is being deleted; wait until it is gone"
            raise Refusal("Conflict", message, kind=KIND, name=manifest.name)
        spec = self.shelf.spec(old)
        manifest = replace(manifest, spec=with_moment(manifest.spec, old.created_at))
        if not same(spec, manifest.spec):
            raise immutable(KIND, manifest.name, spec, manifest.spec)
        return self.shelf.revise(old, manifest, exact=exact)

    def _admit(self, place: Place, uid: str, manifest: Manifest, promised: Promise | None) -> Outcome:
        run = self.prepare(place, uid, manifest, self.shelf.clock.now())
        now = self.shelf.clock.now()
        obj = versioned(run.object, now)
        receipt = promises.receipt_of(promised, obj, now) if promised else None
        objects = self.shelf.journal.objects
        with self.shelf.making(scope_of(obj)):
            objects.admit(obj, run.conversation, run.first, now, agent=run.agent, receipt=receipt)
        # From here on the run is admitted, and says so: whatever becomes of a kick fails no answer.
        try:
            self.executions.start(obj.uid, FIRST_GENERATION)
        except Exception:  # the table's stream and the sweeper start it, only later
            log.exception("run %s (%s) was not started at once", obj.key.name, obj.uid)
        self.ask_for_kick(run.conversation)
        return Outcome(obj, run.spec, created=True)

    def prepare(self, place: Place, uid: str, manifest: Manifest, now: datetime) -> Admitted:
        """A run as it is to be stored: all that it needs is pinned, and its long texts are kept.

        Raises `Refusal` as `admit_run` does for the run itself.
        """
        check_unseen(manifest)
        spec = check_spec(KIND, manifest.name, manifest.spec)
        if not isinstance(spec, AgentRunSpec):
            raise TypeError(f"{manifest.kind} is not admitted as a run")
        _check_deadline(manifest.name, spec, now)
        fixed = with_moment(manifest.spec, now)
        agent = self._agent(place, spec.agent)
        check_available(manifest.name, spec, spec.agent, agent.spec)
        key, model = key_of(place, KIND, manifest.name), _choice(spec.model or agent.spec.model)
        if model.own_key is not None:
            field = "spec.model.apiKeySecret" if spec.model else "spec.agent"
            check_own_key(self.shelf.journal, key, model.wire, model.own_key, field)
        cap = money(agent.spec.per_run_max_cost_usd or defaults.DEFAULT_COST)
        scope, said = Scope(place.org, uid), manifest.metadata
        put = partial(self.shelf.payloads.put, scope)
        obj = Object(
            key=key,
            uid=uid,
            version=0,
            generation=1,
            spec=put(as_text(fixed)),
            created_at=now,
            status=projection.queued(agent.object.generation, cap),
            labels=said.labels or {},
            annotations=self.shelf.noted(scope, said.annotations),
            selectable=selectable(manifest.spec),
        )
        conversation = _conversation(obj, spec, put(_context(agent, spec).to_json()), cap)
        first = _first_input(obj, put(spec.input), place.caller)
        return Admitted(obj, conversation, first, agent.object, fixed)

    def ask_for_kick(self, conversation: Conversation) -> None:
        """Has a new run's line kicked at its deadline, if it has one."""
        if conversation.deadline is None:
            return
        try:
            self.schedules.kick_at(conversation.id, conversation.deadline)
        except Exception:  # the sweeper alone sees the deadline then, up to a minute later
            log.exception("no kick at the deadline of %s", conversation.id)

    def _agent(self, place: Place, name: str) -> _Agent:
        """The agent of that name, which must take runs."""
        obj = agent_named(self.shelf, place.org, place.project, name)
        spec = check_spec("Agent", name, self.shelf.spec(obj))
        if not isinstance(spec, AgentSpec):
            raise TypeError(f"{obj.key} is no agent")
        if spec.state == STOPPED:
            message = f"agent {name!r} is stopped and takes no runs; remove its spec.state first"
            raise Refusal("AgentStopped", message, kind="Agent", name=name)
        return _Agent(obj, spec)


def _conversation(obj: Object, spec: AgentRunSpec, context: Text, cap: Decimal) -> Conversation:
    """The run's conversation; the lease is that of the execution that starts after the commit.

    When that start is lost, the sweeper sees the lease end.
    """
    return Conversation(
        id=obj.uid,
        object=obj.key,
        context=context,
        line=Line(FIRST_GENERATION, lease_until=obj.created_at + LEASE),
        created_at=obj.created_at,
        cap=cap,
        keep_alive=spec.keep_alive or False,
        accepted=1,
        deadline=deadline(spec.deadline, obj.created_at) if spec.deadline else None,
    )


def _first_input(obj: Object, text: Text, author: str) -> Input:
    return Input(
        conversation=obj.uid,
        seq=1,
        text=text,
        state=InputState.QUEUED,
        origin="person",
        author=author,
        created_at=obj.created_at,
    )


def _check_deadline(name: str, spec: AgentRunSpec, now: datetime) -> None:
    if spec.deadline is None:
        return
    at = deadline(spec.deadline, now)
    if at <= now:
        raise invalid(KIND, name, (Cause("spec.deadline", "must lie in the future"),))
    if at - now > LATEST_DEADLINE:
        message = f"must lie at most {LATEST_DEADLINE.days} days ahead"
        raise invalid(KIND, name, (Cause("spec.deadline", message),))


def _context(agent: _Agent, run: AgentRunSpec) -> Context:
    """What the run pins: the agent's settings, with the run's own model in place of the agent's (NODQ-30)."""
    spec = agent.spec
    return Context(
        agent=agent.object.key.name,
        agent_generation=agent.object.generation,
        system=spec.system or "",
        model=_choice(run.model or spec.model),
        working_dir=spec.working_dir or defaults.DEFAULT_FOLDER,
        setup=spec.setup,
        image=spec.image or defaults.DEFAULT_IMAGE,
        env={variable.name: variable.value for variable in spec.env or []},
        max_tool_calls=defaults.DEFAULT_TOOL_CALLS if spec.max_tool_calls is None else spec.max_tool_calls,
        max_parallel_agents=spec.max_parallel_agents or 0,
        parallelism=run.parallelism or 0,
        state_dir=spec.continuity.state_dir if spec.continuity else None,
    )


def _choice(model: ModelSpec | None) -> ModelChoice:
    if model is None:
        return ModelChoice("Nodus")
    own_key = None
    if model.api_key_secret is not None:
        own_key = OwnKey(model.api_key_secret, model.api_key_field, model.base_url)
    return ModelChoice(
        access=model.access,
        name=model.name,
        families=tuple(model.families or ()),
        max_tokens=DEFAULT_MAX_TOKENS if model.max_tokens is None else model.max_tokens,
        wire=WIRES[model.protocol or "Anthropic"],
        own_key=own_key,
    )
