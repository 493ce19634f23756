"""What this machine gives for sandboxes: the launcher, and the isolation that was found to work."""

from __future__ import annotations

import hashlib
import logging
import os
import sys
from collections.abc import Callable
from dataclasses import replace

from localstack.ecs_agent import bubblewrap, cgroups, runtime
from localstack.ecs_agent.egress import trusted_words
from localstack.ecs_agent.isolation import Isolation, Refusal, decide
from localstack.ecs_agent.launcher import Launcher
from localstack.ecs_agent.readiness import tell
from localstack.ecs_agent.settings import Settings
from localstack.ecs_agent.user_namespaces import UserNamespaceError, open_namespaces

_logger = logging.getLogger(__name__)


class Means:
    """The launcher and how isolated its sandboxes are; a refusal is thought over again."""

    def __init__(
        self,
        launcher: Launcher,
        decide_with: Callable[[Launcher], tuple[Launcher, Isolation | Refusal]],
        said: Callable[[Isolation | Refusal], None],
    ) -> None:
        """Decide for the first time.

        Args:
            launcher: starts sandboxes.
            decide_with: tries what works, and answers with the launcher to use from then on.
            said: told of every decision.
        """
        self.launcher = launcher
        self._decide_with = decide_with
        self._said = said
        self.isolation = self._decide()

    def decide_again_if_refused(self) -> None:
        """Try again where nothing worked: somebody may have followed the remedy since."""
        if isinstance(self.isolation, Refusal):
            self.isolation = self._decide()

    def _decide(self) -> Isolation | Refusal:
        self.launcher, isolation = self._decide_with(self.launcher)
        self._said(isolation)
        return isolation


def means_of(settings: Settings) -> Means:
    """What this machine gives now.

    Raises:
        RuntimeFolderError: what is shown inside cannot be put together.
        OSError: the local cloud's folder cannot be written.
        ValueError: the operator's list of trusted places is none.
    """
    return Means(
        _launcher(settings),
        lambda launcher: _decided(settings, launcher),
        lambda isolation: tell(settings.state, str(isolation) if isinstance(isolation, Refusal) else None),
    )


def _launcher(settings: Settings) -> Launcher:
    folder = settings.state.sandboxes
    name = f"nodus-{hashlib.sha256(str(folder).encode()).hexdigest()[:12]}"
    assembled = runtime.assemble(settings.state.folder / "sandbox-runtime", settings.daemon)
    return Launcher(
        assembled,
        folder,
        cgroups.ControlGroups.find(name),
        trusted=trusted_words(settings.environment),
        egress_log=settings.state.logs / "egress.log",
    )


def _decided(settings: Settings, launcher: Launcher) -> tuple[Launcher, Isolation | Refusal]:
    if not launcher.namespaces:
        launcher = replace(launcher, namespaces=_namespaces(settings))
    isolation = decide(
        environment=settings.environment,
        is_root=os.geteuid() == 0,
        is_linux=sys.platform == "linux",
        bwrap=bubblewrap.find_bwrap(),
        attempt=launcher.attempt,
    )
    _log(isolation, launcher)
    return launcher, isolation


def _namespaces(settings: Settings) -> tuple[int, ...]:
    if os.geteuid() != 0 or sys.platform != "linux":
        return ()
    try:
        return tuple(open_namespaces(settings.max_sandboxes))
    except (UserNamespaceError, OSError) as error:
        _logger.warning("daemon and commands will be one user: %s", error)
        return ()


def _log(isolation: Isolation | Refusal, launcher: Launcher) -> None:
    if isinstance(isolation, Refusal):
        _logger.error("%s", isolation)
    elif not isolation.mode.isolated:
        _logger.warning("commands run as your own user WITHOUT isolation, as you asked")
    else:
        limits = ",".join(sorted(launcher.groups.parents)) or "rlimits only"
        _logger.info("isolation: mode=%s bwrap=%s limits=%s", isolation.mode, isolation.bwrap, limits)
