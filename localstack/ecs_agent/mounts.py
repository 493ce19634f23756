"""What a sandbox sees of the machine, as arguments of bubblewrap.

Nothing is shown that is not named here: never `/`, no home of the host, no socket of a container engine.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

RUNTIME = "/opt/sandboxd"
HOME = "/home/agent"
WORKSPACE = "/workspace"
DAEMON_STATE = "/var/lib/sandboxd"
COMMAND_PATH = f"{HOME}/.local/bin:{RUNTIME}/bin:/usr/local/bin:/usr/bin:/bin"

# Public parts of /etc that programs of /usr need. Not /etc/ssl: it holds private keys.
_ETC = (
    *("alternatives", "bash.bashrc", "debian_version", "fonts", "inputrc", "ld.so.cache", "ld.so.conf"),
    *("ld.so.conf.d", "locale.alias", "localtime", "magic", "mime.types", "os-release", "profile"),
    *("protocols", "services", "terminfo", "ca-certificates", "ca-certificates.conf"),
    *("ssl/certs", "ssl/openssl.cnf", "pki/tls/certs", "pki/ca-trust/extracted", "crypto-policies"),
)
_ROOT_LINKS = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
# Shown from the machine, made by the kernel, or the daemon's: no working folder can be there.
_SYSTEM = (
    *("/usr", "/etc", "/proc", "/dev", "/sys", "/run", "/root", "/boot"),
    *(f"/{name}" for name in _ROOT_LINKS),
)


def can_hold_workspace(path: str) -> bool:
    """Whether the working folder can be shown at `path`: outside of the system's folders and the daemon's.

    Args:
        path: absolute and normalized.
    """
    wanted = PurePosixPath(path)
    own = [PurePosixPath(folder) for folder in (RUNTIME, DAEMON_STATE)]
    inside = any(wanted.is_relative_to(folder) for folder in (*map(PurePosixPath, _SYSTEM), *own))
    above = any(folder.is_relative_to(wanted) for folder in (PurePosixPath(HOME).parent, *own))
    return wanted.is_absolute() and not inside and not above


@dataclass(frozen=True)
class Layout:
    """Folders of the machine that a sandbox is made of.

    Args:
        prefix: installation of the interpreter; its programs `python*` and its libraries are shown at their own
            paths, where the interpreter looks for them.
        runtime: the daemon's code (runtime.py), shown at /opt/sandboxd.
        etc: generated files for /etc (`write_etc`).
        home: the sandbox's private home.
        workspace: its private working folder.
        workspace_at: where it is shown (NOD-157).
        daemon_state: the daemon's own folder.
        tmp_bytes: size of /tmp; /dev/shm gets a quarter of it.
    """

    prefix: Path
    runtime: Path
    etc: Path
    home: Path
    workspace: Path
    workspace_at: str
    daemon_state: Path
    tmp_bytes: int


def write_etc(folder: Path, users: dict[str, int]) -> None:
    """Write the generated part of /etc: who exists, no other host, no name server.

    Args:
        folder: an existing folder.
        users: name -> uid inside, which is the gid too.
    """
    homes = {name: HOME if name == "agent" else "/" for name in users}
    files = {
        "passwd": [f"{name}:x:{uid}:{uid}:{name}:{homes[name]}:/bin/sh" for name, uid in users.items()],
        "group": [f"{name}:x:{uid}:" for name, uid in users.items()],
        "hosts": ["127.0.0.1 localhost sandbox", "::1 localhost"],
        "hostname": ["sandbox"],
        "resolv.conf": ["# there is no name server in a sandbox"],
        "nsswitch.conf": ["passwd: files", "group: files", "hosts: files dns"],
    }
    for name, lines in files.items():
        path = folder / name
        path.write_text("\n".join(lines) + "\n")
        path.chmod(0o644)


def arguments(layout: Layout) -> list[str]:
    """Bubblewrap's arguments that build the file system.

    Parents are made explicitly: those that bubblewrap makes on its own are root's with mode 0700. The root and
    /dev are made read-only at the end: in the ordinary user's mode they belong to the command's user, and
    whatever is written there is memory without a limit.
    """
    return [
        *("--ro-bind", "/usr", "/usr"),
        *_root_links(),
        *_folders("/etc", "/etc/ssl", "/etc/pki", "/etc/pki/tls", "/etc/pki/ca-trust"),
        *_folders("/opt", "/home", "/var", "/var/lib", "/run", "/root"),
        *("--symlink", "../tmp", "/var/tmp"),  # noqa: S108 - the sandbox's own
        *_etc(layout.etc),
        *("--proc", "/proc", "--dev", "/dev"),
        *_tmpfs("/dev/shm", layout.tmp_bytes // 4),  # noqa: S108 - the sandbox's own
        *("--remount-ro", "/dev"),
        *_tmpfs("/tmp", layout.tmp_bytes),  # noqa: S108 - the sandbox's own
        *("--bind", str(layout.home), HOME),
        *_parents(layout.workspace_at),
        *("--bind", str(layout.workspace), layout.workspace_at),
        *("--bind", str(layout.daemon_state), DAEMON_STATE),
        *_interpreter(layout.prefix),
        *("--ro-bind", str(layout.runtime), RUNTIME),
        *("--remount-ro", "/"),
    ]


def _tmpfs(path: str, size: int) -> tuple[str, ...]:
    return ("--perms", "1777", "--size", str(size), "--tmpfs", path)


def _folders(*paths: str) -> Iterator[str]:
    for path in paths:
        yield from ("--perms", "0755", "--dir", path)


def _root_links() -> Iterator[str]:
    for name in _ROOT_LINKS:
        path = Path("/") / name
        if path.is_symlink():
            yield from ("--symlink", os.readlink(path), str(path))
        elif path.is_dir():
            yield from ("--ro-bind", str(path), str(path))


def _etc(generated: Path) -> Iterator[str]:
    for name in _ETC:
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")
    for path in sorted(generated.iterdir()):
        yield from ("--ro-bind", str(path), f"/etc/{path.name}")


def _interpreter(prefix: Path) -> Iterator[str]:
    """The interpreter and its library; whatever else an installation holds (conda's environments, a home) stays out."""
    if prefix.is_relative_to("/usr"):
        return
    programs = [path for path in sorted(prefix.glob("bin/python*")) if path.is_file()]
    libraries = [path for path in (prefix / "lib", prefix / "lib64") if path.is_dir()]
    yield from _parents(str(prefix / "bin" / "python"))
    for path in (*programs, *libraries):
        yield from ("--ro-bind", str(path), str(path))


def _parents(path: str) -> Iterator[str]:
    parents = [str(parent) for parent in reversed(PurePosixPath(path).parents) if str(parent) != "/"]
    taken = {"/tmp", "/home", "/opt", "/var", "/var/lib", "/root", HOME}  # noqa: S108 - the sandbox's own
    yield from _folders(*(parent for parent in parents if parent not in taken))
