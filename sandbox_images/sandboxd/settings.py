"""The daemon's settings, read once from its environment (docs/protocols.md §2)."""

import json
import math
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from egress_proxy.policy import Policy

from sandboxd.execcore.spec import CommandUser

VERSION = "0.1.0"
DEFAULT_STATE_DIR = "/var/lib/sandboxd"
DEFAULT_WORKSPACE = "/workspace"
DENY = "Deny"
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# A list of what goes on to commands, not of what does not: whatever else stands in the daemon's environment
# (the link's secrets, an operator's keys, addresses of the container's credentials) stays with the daemon.
_PASSED_ON = (
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR",
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
    "NODE_USE_ENV_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "PIP_CERT", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS",
)  # fmt: skip


class SettingsError(Exception):
    """The environment does not let the daemon start; the message names every variable at fault."""


@dataclass(frozen=True)
class Settings:
    """What the launcher said.

    Args:
        enrol_code: the one-time code; kept out of `repr`.
        is_warm: it is nobody's machine yet; `sandbox_id` and `enrol_code` are the machine's own.
        hard_deadline_s: seconds after the start at which the daemon stops whatever happens.
        dial_fd: descriptor of the launcher's dialling socket, None where the daemon dials itself.
        state_dir: folder asked for; None: the first usable of the default places.
        egress: the policy that commands are kept to; None: they reach nothing (`Deny`).
        workspace_called: how requests name the workspace, where it could not be put there; None: as it is.
        command_env: base environment of every command.
        ca_file: certificates the link trusts beside the system's.
        isolation, limits: what `hello` says of the sandbox.
    """

    sandbox_id: str
    link_http: str
    link_ws: str
    enrol_code: str | None = field(repr=False)
    is_warm: bool
    hard_deadline_s: float
    dial_fd: int | None
    state_dir: str | None
    workspace: str
    workspace_called: str | None
    user: CommandUser
    command_env: Mapping[str, str]
    egress: Policy | None
    ca_file: str | None
    isolation: Mapping[str, Any]
    limits: Mapping[str, Any]

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> "Settings":
        """Reads and checks all variables.

        Raises:
            SettingsError: one or more are missing or wrong.
        """
        reader = _Reader(environ)
        settings = cls(
            sandbox_id=reader.text("NODUS_SANDBOX_ID"),
            link_http=reader.url("NODUS_LINK_HTTP", ("http://", "https://")).rstrip("/"),
            link_ws=reader.url("NODUS_LINK_WS", ("ws://", "wss://")),
            enrol_code=environ.get("NODUS_ENROL_CODE") or None,
            is_warm=bool(environ.get("NODUS_WARM")),
            hard_deadline_s=reader.seconds("NODUS_HARD_DEADLINE_S"),
            dial_fd=reader.number("NODUS_DIAL_FD"),
            state_dir=environ.get("NODUS_STATE_DIR") or None,
            workspace=environ.get("NODUS_WORKSPACE") or DEFAULT_WORKSPACE,
            workspace_called=environ.get("NODUS_WORKSPACE_CALLED") or None,
            user=reader.user(),
            command_env=_command_env(environ),
            egress=reader.policy(),
            ca_file=environ.get("NODUS_CA_FILE") or environ.get("SSL_CERT_FILE") or _bundled_ca_file(),
            isolation=reader.object("NODUS_ISOLATION", {"isolated": False, "guard": None, "missing": []}),
            limits=reader.object("NODUS_LIMITS", {}),
        )
        if reader.faults:
            raise SettingsError("The daemon cannot start: " + "; ".join(reader.faults) + ".")
        return settings


class _Reader:
    """Collects every fault, so that one start shows them all. Values are never repeated: they may be secret."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.faults: list[str] = []

    def text(self, name: str) -> str:
        value = self._environ.get(name, "")
        if not value:
            self.faults.append(f"{name} is missing")
        return value

    def policy(self) -> Policy | None:
        name = self._environ.get("NODUS_EGRESS") or DENY
        allow = self._environ.get("NODUS_EGRESS_ALLOW", "")
        try:
            return None if name == DENY else Policy.of(name, filter(None, allow.split(",")))
        except ValueError as error:
            self.faults.append(f"NODUS_EGRESS and NODUS_EGRESS_ALLOW are no policy: {error}")
            return None

    def url(self, name: str, schemes: tuple[str, ...]) -> str:
        value = self.text(name)
        if value and not value.startswith(schemes):
            self.faults.append(f"{name} does not begin with {' or '.join(schemes)}")
        return value

    def seconds(self, name: str) -> float:
        try:
            value = float(self.text(name) or "nan")
        except ValueError:
            value = math.nan
        if not (math.isfinite(value) and value > 0) and self._environ.get(name):
            self.faults.append(f"{name} is not a positive number of seconds")
        return value

    def number(self, name: str) -> int | None:
        value = self._environ.get(name, "")
        if not value:
            return None
        if not (value.isascii() and value.isdecimal()):
            self.faults.append(f"{name} is not a whole number")
            return None
        return int(value)

    def user(self) -> CommandUser:
        uid = self.number("NODUS_COMMAND_UID")
        gid = self.number("NODUS_COMMAND_GID")
        if uid is None or uid == os.geteuid():
            return CommandUser()
        if os.geteuid() != 0:
            self.faults.append("NODUS_COMMAND_UID names another user, and only root can switch to one")
        return CommandUser(uid, uid if gid is None else gid)

    def object(self, name: str, default: dict[str, Any]) -> dict[str, Any]:
        value = self._environ.get(name, "")
        if not value:
            return default
        try:
            parsed = json.loads(value)
        except ValueError:
            parsed = None
        if not isinstance(parsed, dict):
            self.faults.append(f"{name} is not a JSON object")
            return default
        return parsed


def _command_env(environ: Mapping[str, str]) -> dict[str, str]:
    extra = (name.strip() for name in environ.get("NODUS_PASS_ENV", "").split(","))
    names = (*_PASSED_ON, *(name for name in extra if name and not name.startswith("NODUS_")))
    env = {"PATH": DEFAULT_PATH, "LANG": "C.UTF-8"}
    env |= {name: environ[name] for name in names if name in environ}
    env |= {name: value for name, value in environ.items() if name.startswith("LC_")}
    return env


def _bundled_ca_file() -> str | None:
    """Certificates that the relocatable runtime brings along, for images that have none."""
    path = Path(sys.prefix) / "cacert.pem"
    return str(path) if path.is_file() else None
