"""The first code inside a sandbox: drops what is left of its privileges, then becomes the daemon.

It is run by the daemon's interpreter with `-I -S` as `enter.py SPEC` (JSON, `Entry` in entry.py),
in the process that stays: no second start of the interpreter, and nothing of the daemon runs before the drop.
Standard library only, no other module of the agent: inside there is nothing else.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import resource
import runpy
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any

CLONE_NEWUSER = 0x10000000
PR_SET_DUMPABLE = 4
PR_CAPBSET_DROP = 24
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
CAPABILITY_VERSION_3 = 0x20080522
LAST_POSSIBLE_CAPABILITY = 63

FATAL_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
POLITE_STOP = b"T"
LISTENER = b"L"
LIFE_LINE_CUT = 143


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Sets(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


def main(words: Sequence[str]) -> None:
    """Do what the spec says; see the module's docstring.

    Args:
        words: the spec as JSON.
    """
    spec: dict[str, Any] = json.loads(words[0])
    libc = ctypes.CDLL(None, use_errno=True)
    _check(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "forbid new privileges")
    if spec["userNamespaceFd"] is not None:
        _check(libc.setns(spec["userNamespaceFd"], CLONE_NEWUSER), "enter the user namespace")
    _set_limits(spec["rlimits"])
    if spec["uid"] is not None:
        _bound_capabilities(libc, spec["capabilities"])
        os.setgroups([])
        os.setresgid(spec["gid"], spec["gid"], spec["gid"])
        os.setresuid(spec["uid"], spec["uid"], spec["uid"])
        _set_capabilities(libc, spec["capabilities"])
    # Python's own handler would make a KeyboardInterrupt of a command's `kill -INT 1`.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if spec["isPid1"] and spec["commandUid"] is None:
        _refuse_handlers()
    if spec["listenAt"] is not None:
        _hand_out_listener(spec["listenAt"], spec["lifeFd"])
    _check(libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), "hide the memory")
    _close_all_but(spec["keepFds"])
    if spec["lifeFd"] is not None:
        os.set_inheritable(spec["lifeFd"], False)
        threading.Thread(
            target=_hold_life_line, args=(spec["lifeFd"], spec["isPid1"]), name="life-line", daemon=True
        ).start()
    _run(spec)


def _run(spec: Mapping[str, Any]) -> None:
    if spec["module"] is None:
        user = {} if spec["commandUid"] is None else {"user": spec["commandUid"], "group": spec["commandUid"]}
        subprocess.run(["/bin/sh", "-c", "true"], check=True, stdin=subprocess.DEVNULL, **user)
        return
    sys.path[:] = [*spec["path"], *sys.path]
    sys.argv = [spec["module"]]
    runpy.run_module(spec["module"], run_name="__main__", alter_sys=True)


def _hand_out_listener(port: int, life: int) -> None:
    """Listen in here, on loopback, and give the socket to the agent, which serves it from outside."""
    listener = socket.create_server(("127.0.0.1", port))
    with listener, socket.socket(fileno=os.dup(life)) as line:
        socket.send_fds(line, [LISTENER], [listener.fileno()])


def _refuse_handlers() -> None:
    """Keep the daemon from handling the signals by which it would end.

    Where commands have the daemon's uid they may signal it. The kernel keeps a signal from inside away from
    pid 1 as long as there is no handler for it, SIGKILL included; with a handler, `kill 1` would end the sandbox.
    """
    install = signal.signal

    def install_unless_fatal(number: Any, handler: Any) -> Any:
        return signal.SIG_DFL if number in FATAL_SIGNALS else install(number, handler)

    signal.signal = install_unless_fatal


def _set_limits(limits: Mapping[str, int]) -> None:
    for name, value in limits.items():
        number = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(number)[1]
        ceiling = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(number, (ceiling, ceiling))


def _bound_capabilities(libc: ctypes.CDLL, keep: Sequence[int]) -> None:
    """Take all others out of the bounding set: no program started later can get them back."""
    for capability in range(LAST_POSSIBLE_CAPABILITY + 1):
        if capability in keep:
            continue
        if libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            if ctypes.get_errno() == errno.EINVAL:
                return  # the kernel knows no more of them
            _check(-1, f"give up capability {capability}")


def _set_capabilities(libc: ctypes.CDLL, keep: Sequence[int]) -> None:
    _check(libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0), "clear ambient capabilities")
    sets = (_Sets * 2)()
    for capability in keep:
        word = sets[capability // 32]
        word.effective |= 1 << (capability % 32)
        word.permitted |= 1 << (capability % 32)
    header = _Header(CAPABILITY_VERSION_3, 0)
    _check(libc.capset(ctypes.byref(header), sets), "drop capabilities")


def _close_all_but(keep: Sequence[int]) -> None:
    """Close what was inherited; a descriptor of a folder outside would be a way out."""
    kept = {0, 1, 2, *keep}
    folder = "/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"
    for descriptor in map(int, os.listdir(folder)):
        if descriptor not in kept:
            os.closerange(descriptor, descriptor + 1)  # unlike close: no error for the listing's own


def _hold_life_line(descriptor: int, is_pid_1: bool) -> None:
    """Wait for the agent's word, or for its end.

    After the drop neither --die-with-parent nor the monitor's signals reach this process any more: the end of
    file on this socket does, whatever killed the agent, and as pid 1 this process takes everything with it.
    """
    while True:
        try:
            word = os.read(descriptor, 1)
        except OSError:
            word = b""
        if word != POLITE_STOP:
            os._exit(LIFE_LINE_CUT)
        if is_pid_1:
            _signal_everything_else()
        if callable(signal.getsignal(signal.SIGTERM)):
            signal.raise_signal(signal.SIGTERM)


def _signal_everything_else() -> None:
    try:
        os.kill(-1, signal.SIGTERM)
    except ProcessLookupError:
        return  # nothing but the daemon runs


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"cannot {what}: {os.strerror(number)}")


if __name__ == "__main__":
    main(sys.argv[1:])
