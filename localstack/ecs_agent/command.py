"""The command line of a sandbox: bubblewrap, the mounts, and the entry code in the interpreter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from localstack.ecs_agent import mounts
from localstack.ecs_agent.entry import DAEMON_CAPABILITIES, Entry
from localstack.ecs_agent.isolation import Mode
from localstack.ecs_agent.user_namespaces import host_id

AGENT_UID = 1000
"""User of commands, as they see themselves (in root-one-user they see the host's number)."""

_NAMESPACES = ("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts")
# Executed before bubblewrap: join the control groups that are named up to `--`.
_JOIN = 'while [ "$1" != -- ]; do echo 0 > "$1" || exit 125; shift; done; shift; exec "$@"'


@dataclass(frozen=True)
class Users:
    """Who is who in one sandbox.

    Args:
        names: for /etc/passwd.
        daemon: uid to become on entry; None: nothing changes.
        command: uid for commands, when the daemon may change to it; None: the daemon's.
        host_daemon: the host's number of the daemon's user; None: the agent's own user.
        host_command: the same of the commands' user.
    """

    names: Mapping[str, int]
    daemon: int | None
    command: int | None
    host_daemon: int | None
    host_command: int | None


def users_of(mode: Mode, slot: int) -> Users:
    """The users of the sandbox in `slot`; no two slots share one."""
    daemon, command = host_id(slot, 0), host_id(slot, AGENT_UID)
    if mode is Mode.ROOT:
        return Users({"root": 0, "agent": AGENT_UID}, 0, AGENT_UID, daemon, command)
    if mode is Mode.ROOT_ONE_USER:
        return Users({"root": 0, "agent": command}, command, None, command, command)
    return Users({"root": 0, "agent": AGENT_UID}, None, None, None, None)


@dataclass(frozen=True)
class Descriptors:
    """Descriptors that the sandbox inherits; None: not used.

    Args:
        seccomp: file with the filter.
        status: pipe for bubblewrap's own report.
        life: life line.
        dial: dial service.
        user_namespace: of the slot.
    """

    seccomp: int | None = None
    status: int | None = None
    life: int | None = None
    dial: int | None = None
    user_namespace: int | None = None

    def all(self) -> list[int]:
        everything = (self.seccomp, self.status, self.life, self.dial, self.user_namespace)
        return [descriptor for descriptor in everything if descriptor is not None]

    def inside(self) -> tuple[int, ...]:
        """Those that the daemon keeps."""
        return tuple(descriptor for descriptor in (self.life, self.dial) if descriptor is not None)


def entry_of(
    mode: Mode,
    users: Users,
    descriptors: Descriptors,
    rlimits: Mapping[str, int],
    program: tuple[str | None, tuple[str, ...]],
    *,
    listen_at: int | None = None,
) -> Entry:
    """What the entry code has to do.

    Args:
        mode: of isolation.
        users: of the slot.
        descriptors: inherited.
        rlimits: to set.
        program: module to run (None: the probe) and its import path.
        listen_at: where it listens for the egress proxy.
    """
    module, path = program
    return Entry(
        module=module,
        user_namespace_fd=descriptors.user_namespace,
        uid=users.daemon,
        command_uid=users.command,
        capabilities=DAEMON_CAPABILITIES if mode.two_users else (),
        rlimits=rlimits,
        life_fd=descriptors.life,
        keep_fds=descriptors.inside(),
        listen_at=listen_at,
        is_pid1=mode.isolated,
        path=path,
    )


def isolated_command(
    bwrap: Path,
    mode: Mode,
    layout: mounts.Layout,
    descriptors: Descriptors,
    python: Sequence[str],
) -> list[str]:
    """Bubblewrap's whole command line.

    Args:
        bwrap: the program.
        mode: any but `none`.
        layout: folders.
        descriptors: inherited.
        python: the interpreter's command line inside.
    """
    return [
        str(bwrap),
        *_NAMESPACES,
        *("--as-pid-1", "--new-session", "--die-with-parent", "--hostname", "sandbox"),
        *_privileges(mode),
        *mounts.arguments(layout),
        *("--chdir", layout.workspace_at),
        *_descriptor("--seccomp", descriptors.seccomp),
        *_descriptor("--json-status-fd", descriptors.status),
        "--",
        *python,
    ]


def _privileges(mode: Mode) -> list[str]:
    if mode is Mode.USER:
        uid = str(AGENT_UID)
        return ["--unshare-user", "--disable-userns", "--uid", uid, "--gid", uid]
    kept = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP") if mode is Mode.ROOT_ONE_USER else ()
    # In mode `root` nothing is kept: to enter the namespace it is enough to be the user who made it.
    return ["--cap-drop", "ALL", *(word for name in kept for word in ("--cap-add", name))]


def _descriptor(option: str, descriptor: int | None) -> list[str]:
    return [] if descriptor is None else [option, str(descriptor)]


def joined(groups: Sequence[Path], command: Sequence[str]) -> list[str]:
    """`command`, run in the control groups with these cgroup.procs files."""
    if not groups:
        return list(command)
    return ["/bin/sh", "-c", _JOIN, "sh", *map(str, groups), "--", *command]
