"""A run's sandbox as an object: listed beside people's own, written by its run's line alone (decision 26, NOD-397).

asked for ──► Pending ──► up ──► Running ──► gone and booked ──► Deleted, with the reason ──► removed with the run

Each change is part of a commit that the line makes anyhow. None of them is in the hot loop.
"""

import json
from dataclasses import replace
from decimal import Decimal

from nodus_core.conversations.machine import CPU_UNITS
from nodus_core.conversations.session import Session
from nodus_core.journal.journal import Journal
from nodus_core.journal.objects import appears as put
from nodus_core.journal.objects import projection as show
from nodus_core.journal.objects import versioned
from nodus_core.journal.store import Operation
from nodus_core.kernel import machine_status
from nodus_core.kernel.objects import SANDBOX, Conversation, Object, ObjectKey, Owner
from nodus_core.kernel.projection import Status, dollars
from nodus_core.kernel.sandboxes import Sandbox
from nodus_core.kernel.text import Inline

_MIB_PER_GIB = Decimal(1024)


def appears(session: Session, sandbox: Sandbox) -> tuple[Operation, ...]:
    """What shows a sandbox that is being asked for."""
    machine, run, now = session.machine, session.object, session.ports.clock.now()
    cpu, memory = (
        dollars(each) for each in (Decimal(machine.cpu) / CPU_UNITS, machine.memory / _MIB_PER_GIB)
    )
    spec = {
        "image": machine.image,
        "resources": {"cpu": cpu, "memory": memory},
        "network": {
            "egress": {"policy": machine.egress, **({"allow": [*machine.allow]} if machine.allow else {})}
        },
        **(
            {"continuity": {"mode": "Snapshotted", "stateDir": machine.state_dir}}
            if machine.state_dir
            else {}
        ),
    }
    obj = Object(
        key=key_of(session.conversation, sandbox.id),
        uid=sandbox.id,
        version=0,
        generation=1,
        spec=Inline(json.dumps(spec)),
        created_at=now,
        status=machine_status.requested(machine_status.made(cpu, memory), sandbox, 1),
        owner=Owner(run.key.name, run.uid),
    )
    return put(versioned(obj, now), now)


def comes_up(session: Session, sandbox: Sandbox) -> tuple[Operation, ...]:
    """What shows that its daemon has come up."""
    obj = _object(session, sandbox)
    return () if obj is None else _shown(session, obj, machine_status.running(obj.status, sandbox))


def is_saved(session: Session, sandbox: str, entry: Status) -> tuple[Operation, ...]:
    """What shows how its folder was saved last: `lastSave`."""
    obj = of_run(session.ports.journal, session.conversation, sandbox)
    return () if obj is None else _shown(session, obj, {**obj.status, "lastSave": entry})


def is_gone(session: Session, sandbox: Sandbox, cost: Decimal) -> tuple[Operation, ...]:
    """What shows that it is gone, and what its time has cost."""
    obj = _object(session, sandbox)
    if obj is None:
        return ()
    reason = machine_status.why_released(sandbox, ended=is_over(session.conversation))
    status = machine_status.released(obj.status, sandbox, reason)
    return _shown(session, obj, machine_status.costing(status, cost))


def is_over(head: Conversation) -> bool:
    """Whether a run needs a sandbox no more."""
    return head.ended or head.stop is not None


def key_of(head: Conversation, sandbox: str) -> ObjectKey:
    """The key of the object of a run's sandbox."""
    return ObjectKey(head.object.org, head.object.project, SANDBOX, sandbox)


def of_run(journal: Journal, head: Conversation, sandbox: str) -> Object | None:
    """The object of a run's sandbox; None for one of a run that was begun before there were any."""
    obj = journal.object(key_of(head, sandbox))
    return obj if obj is not None and obj.uid == sandbox else None


def _object(session: Session, sandbox: Sandbox) -> Object | None:
    return of_run(session.ports.journal, session.conversation, sandbox.id)


def _shown(session: Session, obj: Object, status: Status) -> tuple[Operation, ...]:
    now = session.ports.clock.now()
    return show(versioned(replace(obj, status=status), now), now)
