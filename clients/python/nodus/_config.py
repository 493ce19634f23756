"""Where calls go and with which key: contexts of the configuration file, overridden by the environment.

The file is ``~/.config/nodus/config.yaml`` (``NODUS_CONFIG`` names another), readable by its owner only; see
docs/protocols.md, section 7, and NODQ-98.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from nodus.errors import ConfigError, ManifestError

DEFAULT_PROJECT = "default"
SIGN_IN_HINT = "sign in with `nodus login --server URL`, or set NODUS_SERVER and NODUS_TOKEN"


@dataclass(frozen=True)
class Context:
    """A named place: the address below which ``/apis`` lies, the defaults, and the key (never printed)."""

    server: str
    token: str = field(repr=False)
    org: str | None = None
    project: str = DEFAULT_PROJECT
    more: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    """What else the file says about it: other programs' to read, and kept."""


@dataclass(frozen=True)
class Settings:
    """What one client uses."""

    server: str
    token: str = field(repr=False)
    org: str | None
    project: str

    def in_project(self, project: str) -> Settings:
        """The same for another project."""
        return replace(self, project=project)


@dataclass(frozen=True)
class Configuration:
    """The configuration file's content."""

    path: Path
    contexts: Mapping[str, Context] = field(default_factory=dict[str, Context])
    current: str | None = None
    more: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    """What else the file says; kept."""

    def select(self, name: str | None) -> Context | None:
        """The context of that name, or the current one; ``None`` when there is no current one.

        Raises:
            ConfigError: the name is not in the file.
        """
        wanted = name or self.current
        if wanted is None:
            return None
        if wanted not in self.contexts:
            there = ", ".join(self.contexts) or "none"
            raise ConfigError(
                f"no context {wanted!r} in {self.path} (there: {there})", reason="ContextNotFound"
            )
        return self.contexts[wanted]

    def with_context(self, name: str, context: Context) -> Configuration:
        """The same with one context added or replaced, which becomes the current one."""
        return replace(self, contexts={**self.contexts, name: context}, current=name)

    def save(self) -> None:
        """Write the file in one step, readable by its owner only (mode 0600).

        Raises:
            ConfigError: it cannot be written.
        """
        content: dict[str, Any] = {
            **self.more,
            "current-context": self.current,
            "contexts": {name: _to_entry(context) for name, context in self.contexts.items()},
        }
        try:
            # JSON is YAML, and needs no YAML writer.
            self._write(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
        except OSError as error:
            raise ConfigError(
                f"{self.path} cannot be written: {error.strerror or error}; name another file by NODUS_CONFIG"
            ) from error

    def _write(self, text: str) -> None:
        import tempfile  # noqa: PLC0415 (only `nodus login` writes)

        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # mkstemp makes the file with mode 0600: the key is at no moment readable by others.
        handle, draft = tempfile.mkstemp(dir=self.path.parent, prefix=".config-")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            Path(draft).replace(self.path)
        except BaseException:
            Path(draft).unlink(missing_ok=True)
            raise


def config_path(environ: Mapping[str, str] | None = None) -> Path:
    """The configuration file's place (docs/protocols.md, section 7).

    Raises:
        ConfigError: there is no home folder to look in.
    """
    env = os.environ if environ is None else environ
    if env.get("NODUS_CONFIG"):
        return Path(env["NODUS_CONFIG"])
    folder = Path(env.get("XDG_CONFIG_HOME") or "")
    if not folder.is_absolute():  # a relative one is to be ignored, the XDG base directory specification says
        folder = _home(env) / ".config"
    return folder / "nodus" / "config.yaml"


def _home(env: Mapping[str, str]) -> Path:
    if env.get("HOME"):
        return Path(env["HOME"])
    import pwd  # noqa: PLC0415 (rare)

    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError as error:
        raise ConfigError(
            "there is no home folder for the configuration: set HOME, or name a file by NODUS_CONFIG"
        ) from error


def load(path: Path | None = None) -> Configuration:
    """Read the configuration file; a missing one is an empty configuration.

    Raises:
        ConfigError: the file cannot be read, or is not what `nodus login` writes.
    """
    path = path or config_path()
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return Configuration(path)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    from nodus._manifest import parse  # noqa: PLC0415 (only those who have a file pay for its reader)

    try:
        documents = parse(data, str(path))
    except ManifestError as error:
        raise ConfigError(str(error)) from error
    return _from_document(path, documents[0].value if documents else {})


def resolve(
    *,
    server: str | None = None,
    token: str | None = None,
    org: str | None = None,
    project: str | None = None,
    context: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> Settings:
    """Settings of a client: an argument wins over the environment, the environment over the context.

    Raises:
        ConfigError: there is no server or no key, or the context does not exist.
    """
    env = os.environ if environ is None else environ
    chosen = load(config_path(env)).select(context)
    found_server, found_org = _place(server, org, chosen, env)
    found_token = token or env.get("NODUS_TOKEN") or (chosen.token if chosen else None)
    if not found_token:
        raise ConfigError(f"no key for {found_server}: {SIGN_IN_HINT}", reason="NotSignedIn")
    return Settings(
        server=found_server,
        token=checked_token(found_token),
        org=found_org,
        project=project or env.get("NODUS_PROJECT") or (chosen.project if chosen else DEFAULT_PROJECT),
    )


def resolve_place(*, server: str | None, org: str | None, context: str | None) -> tuple[str, str | None]:
    """The server and the organization alone, for who has no key yet.

    Raises:
        ConfigError: there is no server, or the context does not exist.
    """
    return _place(server, org, load(config_path(os.environ)).select(context), os.environ)


def _place(
    server: str | None, org: str | None, chosen: Context | None, env: Mapping[str, str]
) -> tuple[str, str | None]:
    found = server or env.get("NODUS_SERVER") or (chosen.server if chosen else None)
    if not found:
        raise ConfigError(f"no server is configured: {SIGN_IN_HINT}")
    return checked_server(found), org or env.get("NODUS_ORG") or (chosen.org if chosen else None)


def checked_server(address: str) -> str:
    """The address without a closing slash.

    Raises:
        ConfigError: it is not an ``http`` or ``https`` address.
    """
    if not address.startswith(("http://", "https://")):
        raise ConfigError(f"the server's address {address!r} must begin with https:// (or http://)")
    return address.rstrip("/")


def checked_token(token: str) -> str:
    """The key itself.

    Raises:
        ConfigError: it holds what no key holds, such as a line break from copying.
    """
    if not all("!" <= char <= "~" for char in token):
        raise ConfigError("the key holds spaces or other characters that no key has; copy it again")
    return token


_ENTRY_FIELDS = frozenset({"server", "project", "token", "org"})


def _to_entry(context: Context) -> dict[str, Any]:
    own = {"server": context.server, "project": context.project, "token": context.token}
    entry = {**context.more, **own}
    return entry if context.org is None else {**entry, "org": context.org}


def _from_document(path: Path, value: Any) -> Configuration:
    def wrong(what: str) -> ConfigError:
        return ConfigError(f"{path}: {what}; write it anew with `nodus login`")

    if not isinstance(value, dict):
        raise wrong("expected `current-context` and `contexts`")
    content = cast("dict[str, Any]", value)
    entries: Any = content.get("contexts") or {}
    if not isinstance(entries, dict):
        raise wrong("`contexts` must be a mapping of names")
    contexts: dict[str, Context] = {}
    for name, entry in cast("dict[str, Any]", entries).items():
        if not isinstance(entry, dict) or not cast("dict[str, Any]", entry).get("server"):
            raise wrong(f"context {name!r} has no `server`")
        fields = cast("dict[str, Any]", entry)
        contexts[name] = Context(
            server=str(fields["server"]),
            token=str(fields.get("token") or ""),
            org=str(fields["org"]) if fields.get("org") else None,
            project=str(fields.get("project") or DEFAULT_PROJECT),
            more={key: value for key, value in fields.items() if key not in _ENTRY_FIELDS},
        )
    current = content.get("current-context")
    more = {key: value for key, value in content.items() if key not in {"current-context", "contexts"}}
    return Configuration(path, contexts, str(current) if current else None, more)
