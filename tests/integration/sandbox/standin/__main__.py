"""Reads requests from its state folder, runs each as the commands' user, writes the answers there.

Secrets are kept where a daemon has them in the worst case: in the environment it was started with, in its
memory, in a file of its own that is open.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
import time
from pathlib import Path

STATE = Path(os.environ["NODUS_STATE_DIR"])
TOKEN = "token-in-memory-" + os.environ["NODUS_ENROL_CODE"][::-1]


def command_user() -> dict[str, object]:
    uid = os.environ.get("NODUS_COMMAND_UID")
    if uid is None:
        return {}
    return {"user": int(uid), "group": int(os.environ["NODUS_COMMAND_GID"]), "extra_groups": [70_001]}


def command_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("NODUS_")}


def run(request: dict[str, object]) -> dict[str, object]:
    done = subprocess.run(
        request["argv"],
        cwd=os.environ["NODUS_WORKSPACE"],
        env=command_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        start_new_session=True,
        timeout=request["timeout"],
        check=False,
        **command_user(),
    )
    return {
        "code": done.returncode,
        "out": done.stdout.decode("utf-8", "replace"),
        "err": done.stderr.decode("utf-8", "replace"),
    }


def dial(request: dict[str, object]) -> dict[str, object]:
    with socket.socket(fileno=os.dup(int(os.environ["NODUS_DIAL_FD"]))) as channel:
        channel.send(request["dial"].encode())
        answer, descriptors, _, _ = socket.recv_fds(channel, 512, 1)
    if not descriptors:
        return {"answer": answer.decode()}
    with socket.socket(fileno=descriptors[0]) as connection:
        connection.sendall(b"hello")
        return {"answer": answer.decode(), "received": connection.recv(100).decode()}


def about() -> dict[str, object]:
    return {
        "uid": os.getuid(),
        "pid": os.getpid(),
        "isolation": os.environ["NODUS_ISOLATION"],
        "limits": os.environ["NODUS_LIMITS"],
    }


def answer(path: Path) -> None:
    request = json.loads(path.read_text())
    path.unlink()
    try:
        result = run(request) if "argv" in request else dial(request) if "dial" in request else about()
    except Exception as error:  # noqa: BLE001 - the test shows whatever it is
        result = {"error": repr(error)}
    draft = STATE / f"{path.stem}.draft"
    draft.write_text(json.dumps(result))
    draft.rename(STATE / f"{path.stem}.answer")


def main() -> None:
    secret = (STATE / "secret").open("w+")
    secret.write(TOKEN)
    secret.flush()
    while True:
        for path in STATE.glob("*.request"):
            threading.Thread(target=answer, args=(path.rename(path.with_suffix(".taken")),)).start()
        time.sleep(0.01)


main()
