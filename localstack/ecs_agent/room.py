"""One sandbox's place on the machine: its users, folder and limits, and the command line made of them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass

from localstack.ecs_agent import mounts
from localstack.ecs_agent.cgroups import Group
from localstack.ecs_agent.command import Descriptors, Users, entry_of, isolated_command
from localstack.ecs_agent.egress import SHUT, Egress
from localstack.ecs_agent.isolation import Isolation, Mode
from localstack.ecs_agent.limits import Limits, enforced
from localstack.ecs_agent.runtime import Runtime
from localstack.ecs_agent.sandbox_folder import SandboxFolder
from sandbox_images.egress_proxy.variables import PORT


@dataclass(frozen=True)
class Room:
    """Where one sandbox lives.

    Args:
        isolation: the mode that was found to work.
        users: of its slot.
        folder: its folder, already made.
        group: its control groups.
        limits: what it may use.
        workspace_at: where commands see their working folder; only an isolated sandbox can choose.
        egress: what its commands may reach.
    """

    isolation: Isolation
    users: Users
    folder: SandboxFolder
    group: Group
    limits: Limits
    workspace_at: str = mounts.WORKSPACE
    egress: Egress = SHUT

    @property
    def mode(self) -> Mode:
        return self.isolation.mode

    @property
    def listens_at(self) -> int | None:
        """The port on which its first code listens for the egress proxy; None: it has none."""
        return PORT if self.egress.lets_out and self.mode.isolated else None

    def command(self, runtime: Runtime, descriptors: Descriptors, *, probe: bool = False) -> list[str]:
        """The whole command line.

        Args:
            runtime: what is shown at /opt/sandboxd.
            descriptors: inherited.
            probe: run `true` in place of the daemon.
        """
        root = mounts.RUNTIME if self.mode.isolated else str(runtime.folder)
        program = (None if probe else runtime.module, runtime.import_path(root))
        entry = entry_of(
            self.mode,
            self.users,
            descriptors,
            self.limits.rlimits(),
            program,
            listen_at=None if probe else self.listens_at,
        )
        python = [str(runtime.interpreter), "-I", "-S", "-B", f"{root}/enter.py", entry.to_json()]
        if self.isolation.bwrap is None:
            return python
        layout = mounts.Layout(
            prefix=runtime.prefix,
            runtime=runtime.folder,
            etc=self.folder.etc,
            home=self.folder.home,
            workspace=self.folder.workspace,
            workspace_at=self.workspace_at,
            daemon_state=self.folder.daemon,
            tmp_bytes=self.limits.tmp_bytes,
        )
        return isolated_command(self.isolation.bwrap, self.mode, layout, descriptors, python)

    def environment(self, variables: Mapping[str, str], dial: int | None) -> dict[str, str]:
        """The daemon's whole environment; it is not on the command line, which everybody may read.

        Args:
            variables: of the task; those that are set here win.
            dial: descriptor of the dial service.
        """
        isolated = self.mode.isolated
        holds = enforced(self.limits, self.group.enforced, isolated=isolated)
        environment = {
            **variables,
            **self.common_environment(),
            "NODUS_STATE_DIR": mounts.DAEMON_STATE if isolated else str(self.folder.daemon),
            "NODUS_WORKSPACE": self.workspace_at if isolated else str(self.folder.workspace),
            "NODUS_ISOLATION": json.dumps(self.isolation.to_wire()),
            "NODUS_LIMITS": json.dumps(holds.to_wire()),
            "NODUS_DIAL_FD": str(dial),
        }
        if not isolated:
            environment["NODUS_WORKSPACE_CALLED"] = self.workspace_at
        if self.users.command is not None:
            environment["NODUS_COMMAND_UID"] = environment["NODUS_COMMAND_GID"] = str(self.users.command)
        return environment

    def common_environment(self) -> dict[str, str]:
        """What commands get too."""
        isolated = self.mode.isolated
        return {
            "PATH": mounts.COMMAND_PATH if isolated else os.environ.get("PATH", os.defpath),
            "HOME": mounts.HOME if isolated else str(self.folder.home),
            "USER": "agent",
            "LOGNAME": "agent",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
        }
