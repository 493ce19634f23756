"""What `enter.py` is told: the contract between the launcher outside and its own code inside."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

# linux/capability.h
CAP_CHOWN = 0
CAP_DAC_OVERRIDE = 1
CAP_FOWNER = 3
CAP_KILL = 5
CAP_SETGID = 6
CAP_SETUID = 7
CAP_SYS_PTRACE = 19

# Over the sandbox's own user namespace only: they reach its own users' files and processes and nothing else.
DAEMON_CAPABILITIES = (
    CAP_CHOWN,
    CAP_DAC_OVERRIDE,
    CAP_FOWNER,
    CAP_KILL,
    CAP_SETGID,
    CAP_SETUID,
    CAP_SYS_PTRACE,
)


@dataclass(frozen=True)
class Entry:
    """How the first process of a sandbox becomes the daemon.

    Args:
        module: Python module to run; None: run `sh -c true` as a command would be run, and end (the probe).
        user_namespace_fd: descriptor of the namespace to enter; None: stay.
        uid: user and group to become; None: stay who it is.
        command_uid: user and group of commands; None: the daemon's own.
        capabilities: numbers of those that are kept; all others are gone for good.
        rlimits: name without RLIMIT_ -> value, soft and hard alike.
        life_fd: life line to the agent; its end ends the process. None: only in the probe.
        keep_fds: all descriptors that stay open beside 0 to 2.
        listen_at: port on loopback at which it listens; the socket goes out over the life line. None: not.
        is_pid1: it is the first process of its own pid namespace.
        path: folders put in front of `sys.path`.
    """

    module: str | None
    user_namespace_fd: int | None = None
    uid: int | None = None
    command_uid: int | None = None
    capabilities: tuple[int, ...] = ()
    rlimits: Mapping[str, int] = field(default_factory=dict[str, int])
    life_fd: int | None = None
    keep_fds: tuple[int, ...] = ()
    listen_at: int | None = None
    is_pid1: bool = True
    path: tuple[str, ...] = ()

    def to_json(self) -> str:
        """The one argument of `enter.py`. It is visible in /proc, so it holds nothing secret."""
        return json.dumps(
            {
                "module": self.module,
                "userNamespaceFd": self.user_namespace_fd,
                "uid": self.uid,
                "gid": self.uid,
                "commandUid": self.command_uid,
                "capabilities": list(self.capabilities),
                "rlimits": dict(self.rlimits),
                "lifeFd": self.life_fd,
                "keepFds": list(self.keep_fds),
                "listenAt": self.listen_at,
                "isPid1": self.is_pid1,
                "path": list(self.path),
            }
        )
