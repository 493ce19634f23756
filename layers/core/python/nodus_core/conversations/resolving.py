"""A person says what became of a step whose outcome is not known; the line goes on from there (NODQ-55).

Nothing is ever resolved by itself: the statement, who made it and when are journaled with it.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NoReturn

from nodus_core.access.door import Place
from nodus_core.conversations import promises
from nodus_core.conversations.control import finished
from nodus_core.conversations.kicks import Kicks
from nodus_core.conversations.promises import Promise
from nodus_core.conversations.races import look_again
from nodus_core.conversations.reading import live_status
from nodus_core.conversations.shelf import Outcome, Shelf, head_of, scope_of
from nodus_core.conversations.stepping import state_of
from nodus_core.conversations.unresolved import name_of, unresolved
from nodus_core.journal.objects import projection as projected
from nodus_core.journal.objects import versioned
from nodus_core.kernel import ids, metering, projection
from nodus_core.kernel.decide import NEEDS_RESOLUTION
from nodus_core.kernel.errors import Cause, Refusal
from nodus_core.kernel.objects import AGENT_RUN, Attention, Conversation, Object, Run
from nodus_core.kernel.progress import resolve
from nodus_core.kernel.states import Statement, TaskKind
from nodus_core.kernel.tasks import Resolution, Result, Task
from nodus_core.kernel.times import stamp
from nodus_core.resources.refusals import invalid
from nodus_core.resources.resolution import KIND as RESOLUTION
from nodus_core.resources.resolution import Stated

COMMANDS = (ids.SETUP, ids.RUN_COMMAND)
"""Tools whose steps end with an exit code."""


@dataclass(frozen=True)
class _Held:
    """A step that a person is asked about, as it was read: its place in its run and the entry that asks."""

    head: Conversation
    run: Run
    task: Task
    item: Attention


@dataclass(frozen=True)
class Resolving:
    """The use case of resolving a step."""

    shelf: Shelf
    kicks: Kicks

    def resolve(self, place: Place, name: str, stated: Stated) -> Outcome:
        """Keeps a person's word on a held step; once all are resolved, the run goes on.

        The same request key with the same statement gives the first outcome again. Raises `Refusal`: `NotFound`
        for the run or the step; `Conflict` when the step's outcome is known, somebody has resolved it, or the run
        is over or being cancelled; `IdempotencyKeyConflict`; `Invalid` for a result that such a step cannot have.
        """

        def attempt() -> Outcome:
            obj = self.shelf.find(place, AGENT_RUN, name)
            promised = _promise(place, obj, stated)
            with self.shelf.reading(obj):
                held = self._held(obj, stated.step)
            # The step before the receipt: an equal call that resolves it in between is then seen as what it is.
            receipt = promises.kept(self.shelf.journal, promised, self.shelf.clock.now())
            if receipt is not None:
                manifest = self.shelf.manifest(obj)
                first = promises.first_outcome(receipt, obj.key, manifest)
                return Outcome(first, manifest.spec, replayed=True)
            with self.shelf.reading(obj):
                if held is None:
                    self._refuse(obj, stated.step)
                shown = self._resolve(obj, held, stated, place.caller, promised)
            self.kicks.nudge(obj.uid)
            return Outcome(shown, self.shelf.spec(obj))

        return look_again(AGENT_RUN, name, attempt)

    def _resolve(self, obj: Object, held: _Held, stated: Stated, by: str, promised: Promise) -> Object:
        journal, run, task, head = self.shelf.journal, held.run, held.task, held.head
        _check_result(stated, task)
        result, status = self._result(obj, stated), self._status(obj, resolve(run, task.key))
        room = journal.sandbox(head.sandbox) if head.sandbox else None
        now = self.shelf.clock.now()
        said = Resolution(task.attempt, Statement(stated.outcome), by, now, held.item.what, result)
        shown = versioned(replace(obj, status=status), now)
        compute = metering.total(room, now) if room else head.compute
        answered = replace(shown, status=live_status(status, head, run.spent, compute))
        receipt = promises.receipt_of(promised, answered, now)
        shows = projected(shown, now, over=obj.version)
        journal.resolutions.resolve(run, task, said, receipt, shows)
        return shown

    def _held(self, obj: Object, step: str) -> _Held | None:
        """The step of that name, if a person is asked what became of it."""
        head = head_of(self.shelf.journal, obj)
        run = self.shelf.journal.run(head.run) if head.run else None
        if run is None or head.stop is not None or finished(obj):
            return None
        tasks = self.shelf.journal.tasks(run.uid, [item.task for item in run.attention])
        for item in run.attention:
            task = tasks.get(item.task)
            if task is not None and task.key in run.open and name_of(run, task) == step:
                return _Held(head, run, task, item)
        return None

    def _refuse(self, obj: Object, step: str) -> NoReturn:
        """Says why a step cannot be resolved."""
        name, head = obj.key.name, head_of(self.shelf.journal, obj)
        found = next((pair for pair in self._steps(head, step)), None)
        if found is None:
            message = (
                f"AgentRun {name!r} has no step {step!r}; its steps are listed at …/agentruns/{name}/steps"
            )
            raise Refusal("NotFound", message, kind="Step", name=step)
        said = found.resolutions[-1] if found.resolutions else None
        if said is not None:
            message = f"step {step!r} was resolved by {said.by!r} at {stamp(said.at)}: {said.statement.value}"
        elif finished(obj):
            message = f"AgentRun {name!r} is {obj.status['phase']}: nothing follows from its steps any more"
        elif head.stop is not None:
            message = f"AgentRun {name!r} is being stopped ({head.stop.reason}): nothing follows from its steps any more"
        else:
            message = f"step {step!r} is {state_of(found)}: nobody is asked what became of it"
        raise Refusal("Conflict", message, kind=AGENT_RUN, name=name)

    def _steps(self, head: Conversation, step: str) -> Iterator[Task]:
        """Steps of that name; only a refusal looks for them."""
        for number in range(1, head.opened + 1):
            if step.startswith("turn-") and not step.startswith(f"turn-{number}."):
                continue
            run = self.shelf.journal.run(ids.run_id(head.id, number))
            if run is not None:
                tasks = self.shelf.journal.all_tasks(run.uid)
                yield from (task for task in tasks if name_of(run, task) == step)

    def _result(self, obj: Object, stated: Stated) -> Result | None:
        if stated.result is None:
            return None
        text = stated.result.text
        kept = self.shelf.payloads.put(scope_of(obj), text) if text else None
        return Result(text=kept, exit_code=stated.result.exit_code)

    def _status(self, obj: Object, after: Run) -> projection.Status:
        """What people see from here on; a run that works on something else meanwhile shows that."""
        if obj.status.get("reason") != NEEDS_RESOLUTION:
            return obj.status
        left = unresolved(self.shelf.journal, after)
        if not left:
            return projection.resumed(obj.status)
        return projection.waiting(obj.status, NEEDS_RESOLUTION, obj.status.get("message", ""), left)


def _promise(place: Place, obj: Object, stated: Stated) -> Promise:
    """A request key counts within its run."""
    where = json.dumps([place.org, place.project, "resolution", obj.uid, stated.request_key])
    return Promise(ids.digest(where), ids.digest(stated.meaning()), "requestKey")


def _check_result(stated: Stated, task: Task) -> None:
    """Raises `Refusal` `Invalid` for a result that the step cannot have."""
    code = stated.result.exit_code if stated.result else None
    if code is not None and task.tool not in COMMANDS:
        cause = Cause("result.exitCode", f"goes only with a command; {stated.step} is none")
        raise invalid(RESOLUTION, None, (cause,))
    if stated.outcome != Statement.HAPPENED:
        return
    text = stated.result.text if stated.result else None
    if task.kind is TaskKind.MODEL and not (text and text.strip()):
        said = "is required: the model's reply, which the run goes on with; where it is not known, say DidNotHappen"
        cause = Cause("result.text", said, "FieldValueRequired")
        raise invalid(RESOLUTION, None, (cause,))
    if task.tool == ids.SETUP and code is None:
        cause = Cause("result.exitCode", "is required: whether the setup succeeded", "FieldValueRequired")
        raise invalid(RESOLUTION, None, (cause,))
