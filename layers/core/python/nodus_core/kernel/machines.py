"""What the line of a Sandbox does next: it keeps one machine, and has no turns (NOD-399 … NOD-412).

wanted, none there ──► Launch ──► up ──► Keep … ──► idle, out of money, asked to stop ──► Pause
     ▲                   └──► it did not come up ─┐                                         │ released, gone, booked
     │                                            ▼                                         ▼
     └── asked to start ◄── Rest (paused) ◄── Settle (why it is gone) ◄─────────────────────┘

Where its folder is saved: Launch restores it; Keep ──► BeginSave ──► FollowSave ──► Keep; and a last save, which lets
the machine go when it has ended, comes in the place of Pause.
"""

from nodus_core.kernel import saving
from nodus_core.kernel.decisions import (
    BeginSave,
    Decision,
    DropSaves,
    ExtendMachine,
    FollowSave,
    Keep,
    Launch,
    LetGo,
    Pause,
    Rest,
    Settle,
)
from nodus_core.kernel.objects import Conversation
from nodus_core.kernel.sandboxes import Sandbox
from nodus_core.kernel.states import SandboxState

MACHINE = "machine"
"""`Conversation.kind` of a Sandbox's line."""

STOPPED = "Stopped"
IDLE = "Idle"
LOST = "SandboxLost"
START_FAILED = "SandboxStartFailed"
COST_REACHED = "MaxCostReached"
UNPAID = "BudgetBlocked"
"""Why a machine stands still. None of them passes by itself: it runs again when it is asked to (NOD-411)."""


def next_of(head: Conversation, sandbox: Sandbox | None, *, unpaid: bool) -> Decision:
    """The next thing to do on a Sandbox's line; what is gone and not booked, and a stop, come before."""
    if head.saving is not None:
        return FollowSave()
    dropped = (*head.unkept, *saving.superfluous(head.saves))
    if dropped:
        return DropSaves(dropped)
    if sandbox is None or sandbox.id != head.sandbox:
        return Rest(head.paused) if head.paused else Launch()
    if sandbox.state is SandboxState.GONE:
        return Settle(sandbox)
    if sandbox.state is SandboxState.RELEASING:
        return LetGo(sandbox)
    if head.paused:
        return BeginSave(head.paused) if saving.is_kept(sandbox) else Pause(head.paused)
    if sandbox.state is SandboxState.REQUESTED:
        return Launch()
    if unpaid:
        return ExtendMachine()
    return Launch() if sandbox.restore else Keep()


def why_gone(head: Conversation, sandbox: Sandbox) -> str:
    """Why a machine that is gone stands still: what was asked for, or what befell it."""
    if head.paused:
        return head.paused
    return LOST if sandbox.token_hash and not sandbox.restore else START_FAILED
